"""Decisions a second of backends and of whole runs; those of threads against playing in turn with learning."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing

import torch

from command.settings.compose import compose
from tests.bench.backends import decisions_per_second
from tests.bench.timing import report
from train.api import make_backend
from train.dqn.network.build import inference_network
from train.dqn.trainer import DqnTrainer
from train.run.folder import RunFolder
from train.run.metrics import resources
from train.run.runner import Runner
from train.settings.dqn import TrainSettings

ROUNDS, SECONDS = 3, 5.0
CPU = torch.device("cpu")


def run_on_threads_over_local() -> None:
    """Decisions/s that are played and learned from, end to end but for evaluations: `rollout=threads` over `local`."""
    torch.set_num_threads(1)
    rates: dict[str, list[float]] = {"local": [], "threads": []}
    for _ in range(ROUNDS):
        for kind, found in rates.items():
            found.append(learned_per_second(CPU, f"rollout={kind}"))
    local, threads = (max(found) for found in rates.values())
    cpus = {"cpus": resources.cpus(), "local": round(local), "threads": round(threads)}
    report("run_on_threads_over_local", threads / local, "ratio", target=1.0, **cpus)


def played_per_second(device: torch.device, *overrides: str) -> float:
    """With all that play kept busy, from the first rollout on."""
    with tempfile.TemporaryDirectory() as runs:
        settings = compose(TrainSettings, "train", [*overrides, f"runs={runs}"])
        with closing(make_backend(settings, device)) as rollouts:
            rollouts.publish(0, inference_network(settings.load_game(), settings, device).float().state_dict())
            return decisions_per_second(rollouts, rollouts.games(), SECONDS)


def learned_per_second(device: torch.device, *overrides: str) -> float:
    """Of a run of Tressette with its recipe, after the first updates."""
    with tempfile.TemporaryDirectory() as runs:
        more = ["evaluation.every_episodes=1000000000", "checkpoint.every_episodes=1000000000", "minutes=10"]
        settings = compose(TrainSettings, "train", [*overrides, f"runs={runs}", *more])
        with RunFolder(settings) as folder, closing(make_backend(settings, device)) as rollouts:
            trainer = DqnTrainer(settings, folder, device, rollouts)
            seen: list[tuple[float, int]] = []

            def enough() -> bool:
                if trainer.learner.updates > 20:
                    seen.append((time.perf_counter(), trainer.counters.env_steps))
                return bool(seen) and seen[-1][0] - seen[0][0] > SECONDS

            Runner(trainer, folder, enough).run()
    (began, before), (ended, after) = seen[0], seen[-1]
    return (after - before) / (ended - began)


FIGURES = (run_on_threads_over_local,)
