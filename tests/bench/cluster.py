"""Figures of a cluster: what Ray costs, what a second node brings, what many workers cost the learner's thread."""

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

from command.settings.compose import compose
from tests.bench.backends import decisions_per_second
from tests.bench.stub_cluster import GAMES, stub_cluster
from tests.bench.timing import report
from tests.train.processes import named
from train.dqn.network.build import acting_network
from train.dqn.rollout.backend import LocalBackend
from train.dqn.rollout.ray.backend import RayBackend
from train.dqn.rollout.request import RolloutRequest
from train.run.metrics import resources
from train.settings.dqn import TrainSettings

CPU = torch.device("cpu")
ROUNDS, SECONDS = 3, 8.0


def _settings(*overrides: str) -> TrainSettings:
    return compose(TrainSettings, "train", overrides)


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
                alone = decisions_per_second(local, 512, SECONDS)
                with usage:
                    pairs.append((alone, decisions_per_second(rollouts, 512, SECONDS)))
        os.sched_setaffinity(0, everywhere)
        best_local, best_ray = (round(max(rates)) for rates in zip(*pairs, strict=True))
        rates = {"cores": len(cores), "local": best_local, "ray": best_ray, "cpu_share": usage.shares()}
        report("ray_overhead", 1 - best_ray / best_local, "share", target=0.05, direction="at most", **rates)


class _CpuUsage:
    """What share of a core the processes below this one use while it is entered, by their parts in a run."""

    PARTS: ClassVar = {
        "worker": "ray::WorkerActor",
        "driver": "train.dqn.rollout.ray.supervisor",
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
                    rates.append(max(decisions_per_second(rollouts, 512, SECONDS) for _ in range(ROUNDS)))
        finally:
            cluster.shutdown()
    os.sched_setaffinity(0, everywhere)
    one, two = rates
    report("two_nodes_over_one", two / one, "ratio", target=1.8, one=round(one), two=round(two))


def worker_memory() -> None:
    """Memory of a rollout worker that has played: its proportional set size."""
    with _ray("rollout.workers=1") as rollouts:
        decisions_per_second(rollouts, 512, SECONDS)
        (pid,) = named(os.getpid(), "ray::WorkerActor")
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    pss = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    report("worker_memory", pss * 1024 / resources.MIB, "MiB", target=600, direction="at most")


STUBS = (2, 8, 32, 64)


def learner_share() -> None:
    """What share of its time the learner's thread spends on publishing, feeding and hearing, by number of workers.

    The workers are stubs, each of which gives a rollout of 512 hands of Tressette a second. What counts is the time in
    these methods, copying the weights included.
    """
    for workers in STUBS:
        with stub_cluster(workers) as stubs:
            seen = stubs.watch(SECONDS, GAMES)
        share, messages = seen.publishing + seen.hearing, round(seen.messages, 1)
        about = {"workers": workers, "rollouts_per_second": messages, "driver": round(seen.driver, 3)}
        report("learner_share", share, "share", target=0.02, direction="at most", **about)


FIGURES = (ray_overhead, two_nodes, worker_memory, learner_share)
