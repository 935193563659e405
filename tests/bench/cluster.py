"""Figures of a cluster: what Ray costs, what a second node brings, how long a checkpoint stops the learner."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import psutil
import pytest
import torch
from ray.cluster_utils import Cluster

from command.compose import compose
from tests.bench.timing import report
from tests.train.processes import named
from train.dqn.cluster.rollouts import RayBackend
from train.dqn.rollout import LocalBackend, RolloutBackend, RolloutRequest, acting_network
from train.dqn.trainer import Trainer
from train.run import resources
from train.run.checkpoint import BackgroundWriter
from train.run.folder import RunFolder
from train.settings.dqn import TrainSettings

CPU = torch.device("cpu")
ROUNDS, SECONDS = 3, 8.0
CHECKPOINT_ROWS = 1_000_000


def _settings(*overrides: str) -> TrainSettings:
    return compose(TrainSettings, "train", overrides)


def _decisions_per_second(rollouts: RolloutBackend, batch: int) -> float:
    """With every worker kept busy, from the first rollout that came back."""
    first, decisions, started = 0, 0, 0.0
    while not started or time.perf_counter() - started < SECONDS:
        while rollouts.free_slots() > 0:
            rollouts.submit(RolloutRequest(first, batch, 0.05))
            first += batch
        done = sum(len(rollout.transitions.action) for rollout in rollouts.ready(wait=True))
        decisions += done if started else 0
        started = started or (time.perf_counter() if done else 0.0)
    passed = time.perf_counter() - started
    while rollouts.free_slots() < rollouts.workers() * 2:
        rollouts.ready(wait=True)
    return decisions / passed


@contextmanager
def _ray(*overrides: str, **more: Any) -> Iterator[RayBackend]:
    with (
        tempfile.TemporaryDirectory() as runs,
        _ray_in(_settings("rollout=ray", f"runs={runs}", *overrides), **more) as found,
    ):
        yield found


@contextmanager
def _ray_in(settings: TrainSettings, **more: Any) -> Iterator[RayBackend]:
    rollouts = RayBackend(settings, **more)
    try:
        rollouts.publish(0, acting_network(settings.load_game(), settings, CPU).float().state_dict())
        while rollouts.workers() < (settings.rollout.workers or 1):
            rollouts.ready(wait=True)
        yield rollouts
    finally:
        rollouts.close()


def _on_core(core: int) -> None:
    """This process, and whatever it starts from now on, runs on this core alone."""
    os.sched_setaffinity(0, {core})


def ray_overhead() -> None:
    """One Ray worker against playing in the learner's process: with all cores, and with everything on one core."""
    everywhere = os.sched_getaffinity(0)
    for cores in (everywhere, {min(everywhere)}):
        os.sched_setaffinity(0, cores)
        local = LocalBackend(_settings("rollout=local"), CPU)
        local.submit(RolloutRequest(0, 512, 0.05))
        local.ready(wait=True)
        with _ray("rollout.workers=1") as rollouts:
            usage, pairs = _CpuUsage(), []
            for _ in range(ROUNDS):
                alone = _decisions_per_second(local, 512)
                with usage:
                    pairs.append((alone, _decisions_per_second(rollouts, 512)))
        os.sched_setaffinity(0, everywhere)
        best_local, best_ray = (round(max(rates)) for rates in zip(*pairs, strict=True))
        rates = {"cores": len(cores), "local": best_local, "ray": best_ray, "cpu_share": usage.shares()}
        report("ray_overhead", 1 - best_ray / best_local, "share", target=0.05, direction="at most", **rates)


class _CpuUsage:
    """What share of a core the processes below this one use while it is entered, by their parts in a run."""

    PARTS: ClassVar = {
        "worker": "ray::WorkerActor",
        "broker": "train.dqn.cluster.keeper",
        "raylet": "raylet/raylet",
        "gcs": "gcs_server",
    }

    def __init__(self) -> None:
        self._pids = {part: named(os.getpid(), name) for part, name in self.PARTS.items()}
        self._seconds = dict.fromkeys(self.PARTS, 0.0)
        self._passed = 0.0

    def __enter__(self) -> None:
        self._count(-1)

    def __exit__(self, *error: object) -> None:
        self._count(1)

    def _count(self, sign: int) -> None:
        self._passed += sign * time.perf_counter()
        for part, pids in self._pids.items():
            for pid in pids:
                times = psutil.Process(pid).cpu_times()
                self._seconds[part] += sign * (times.user + times.system)

    def shares(self) -> dict[str, float]:
        return {part: round(used / self._passed, 3) for part, used in self._seconds.items()}


def two_nodes() -> None:
    """Two Ray nodes of one core each, on this machine, against one of them; the driver is on the first."""
    everywhere = os.sched_getaffinity(0)
    if len(everywhere) < 2:
        print("two_nodes: needs two cores", file=sys.stderr)
        return
    rates = []
    for nodes in (1, 2):
        _on_core(min(everywhere))
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            if nodes == 2:
                _on_core(max(everywhere))
                cluster.add_node(num_cpus=1)
                _on_core(min(everywhere))
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("RAY_ADDRESS", cluster.address)
                with _ray(f"rollout.workers={nodes}", f"rollout.nodes={nodes}") as rollouts:
                    rates.append(max(_decisions_per_second(rollouts, 512) for _ in range(ROUNDS)))
        finally:
            cluster.shutdown()
    os.sched_setaffinity(0, everywhere)
    one, two = rates
    report("two_nodes_over_one", two / one, "ratio", target=1.8, one=round(one), two=round(two))


def worker_memory() -> None:
    """Memory of a rollout worker that has played: its proportional set size."""
    with _ray("rollout.workers=1") as rollouts:
        _decisions_per_second(rollouts, 512)
        (pid,) = named(os.getpid(), "ray::WorkerActor")
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    pss = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    report("worker_memory", pss * 1024 / resources.MIB, "MiB", target=600, direction="at most")


class _Counted:
    """RolloutBackend, and the seconds that the thread of the learner is in their methods, but for waiting."""

    def __init__(self, rollouts: RayBackend) -> None:
        self._rollouts, self.seconds, self.calls = rollouts, 0.0, 0

    def __getattr__(self, name: str) -> Any:
        def timed(*arguments: Any) -> Any:
            started = time.perf_counter()
            try:
                return getattr(self._rollouts, name)(*arguments)
            finally:
                self.seconds += time.perf_counter() - started
                self.calls += 1

        return timed


STUBS, STUB_SECONDS = (2, 8, 32, 64), 1.0


def learner_share() -> None:
    """What share of its time the learner's thread spends on publishing, feeding and hearing, by number of workers.

    The workers are stubs, each of which gives a rollout of 512 hands of Tressette a second; there are new weights with
    every look. What counts is the time in these methods, copying the weights included.
    """
    settings = _settings("rollout=local")
    local = LocalBackend(settings, CPU)
    local.submit(RolloutRequest(0, 512, 1.0))
    (rollout,) = local.ready(wait=True)
    weights = acting_network(settings.load_game(), settings, CPU).float()
    orders = ([array.copy() for array in rollout.transitions], STUB_SECONDS)
    for workers in STUBS:
        with _ray(f"rollout.workers={workers}", actors="tests.bench.stubs", orders=orders) as rollouts:
            counted, first, came, version = _Counted(rollouts), 0, 0, 0
            started = time.perf_counter()
            while time.perf_counter() - started < SECONDS:
                version += 1
                while counted.free_slots() > 0:
                    if counted.wants_weights():
                        before = time.perf_counter()
                        acting = {name: tensor.clone() for name, tensor in weights.state_dict().items()}
                        counted.seconds += time.perf_counter() - before
                        counted.publish(version, acting)
                    counted.submit(RolloutRequest(first, 512, 0.05))
                    first += 512
                came += len(counted.ready(False))
                time.sleep(0.002)  # an update
            passed = time.perf_counter() - started
        figures = {"workers": workers, "rollouts_per_second": round(came / passed, 1), "calls": counted.calls}
        report("learner_share", counted.seconds / passed, "share", target=0.02, direction="at most", **figures)


def checkpoint_stop() -> None:
    """How long the learner stands still for a checkpoint with a full buffer, and how long the disk then takes."""
    with tempfile.TemporaryDirectory() as runs:
        settings = _settings("rollout=local", f"runs={runs}", f"replay.capacity={CHECKPOINT_ROWS}")
        with RunFolder(settings) as folder:
            local = LocalBackend(settings, CPU)
            trainer = Trainer(settings, folder, CPU, local)
            local.submit(RolloutRequest(0, 4096, 1.0))
            (rollout,) = local.ready(wait=True)
            while trainer.replay.size < CHECKPOINT_ROWS:
                trainer.replay.add(rollout.transitions)
            stops, writer = [], BackgroundWriter()
            for k in range(ROUNDS):
                started = time.perf_counter()
                writer.save(Path(runs) / f"episode_{k:012d}.pt", trainer.state_dict())
                stops.append(time.perf_counter() - started)
                writer.wait()
                whole = time.perf_counter() - started
    report("checkpoint_stop", max(stops), "s", target=0.5, direction="at most", written_after=round(whole, 2))


FIGURES = (ray_overhead, two_nodes, worker_memory, learner_share, checkpoint_stop)
