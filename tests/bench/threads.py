"""Whole runs with games on threads of the learner's process, against games played in turn with learning."""

from __future__ import annotations

import tempfile
import time
from contextlib import closing

import torch

from command.compose import compose
from tests.bench.timing import report
from train.__main__ import make_backend
from train.dqn.trainer import Trainer
from train.run import resources
from train.run.folder import RunFolder
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
            found.append(_learned_per_second(kind))
    local, threads = (max(found) for found in rates.values())
    cpus = {"cpus": resources.cpus(), "local": round(local), "threads": round(threads)}
    report("run_on_threads_over_local", threads / local, "ratio", target=1.0, **cpus)


def _learned_per_second(kind: str) -> float:
    """Of a run of Tressette with its recipe, after the first update."""
    with tempfile.TemporaryDirectory() as runs:
        more = ["evaluation.every_episodes=1000000000", "checkpoint.every_episodes=1000000000", "minutes=10"]
        settings = compose(TrainSettings, "train", [f"rollout={kind}", f"runs={runs}", *more])
        with RunFolder(settings) as folder, closing(make_backend(settings, CPU)) as rollouts:
            trainer = Trainer(settings, folder, CPU, rollouts)
            seen: list[tuple[float, int]] = []

            def enough() -> bool:
                if trainer.learner.updates > 20:
                    seen.append((time.perf_counter(), trainer.counters.env_steps))
                return bool(seen) and seen[-1][0] - seen[0][0] > SECONDS

            Runner(trainer, folder, enough).run()
    (began, before), (ended, after) = seen[0], seen[-1]
    return (after - before) / (ended - began)


FIGURES = (run_on_threads_over_local,)
