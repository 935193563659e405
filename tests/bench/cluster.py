"""Figures of a cluster: overhead of Ray, and gain by a second node."""

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

import pytest
import torch
from ray.cluster_utils import Cluster

from busso.base import system
from busso.command.settings.compose import compose
from busso.train.network.build import inference_network
from busso.train.rollout.backend import LocalBackend, RolloutBackend
from busso.train.rollout.ray.backend import RayBackend
from busso.train.rollout.request import RolloutRequest
from busso.train.settings.dqn import TrainSettings
from tests.bench.timing import report
from tests.train.processes import named

CPU = torch.device("cpu")
ROUNDS, SECONDS = 3, 8.0


def _settings(*overrides: str) -> TrainSettings:
    return compose(TrainSettings, "train", overrides)


@contextmanager
def _ray(*overrides: str) -> Iterator[RayBackend]:
    with tempfile.TemporaryDirectory() as runs:
        settings = _settings("rollout=ray", f"runs={runs}", *overrides)
        with closing(RayBackend(settings)) as rollouts:
            rollouts.publish(0, inference_network(settings.load_game(), settings, CPU).float().state_dict())
            while rollouts.workers() < (settings.rollout.workers or 1):
                rollouts.ready(wait=True)
            yield rollouts


def decisions_per_second(rollouts: RolloutBackend, games: int, seconds: float) -> float:
    """Return the rate with all workers busy, from the first finished rollout on; finally drain the backend."""
    firsts, out, decisions, started = count(0, games), 0, 0, 0.0
    while not started or time.perf_counter() - started < seconds:
        while rollouts.free_slots() > 0:
            rollouts.submit(RolloutRequest(next(firsts), games, 0.05))
            out += 1
        done = rollouts.ready(wait=True)
        out -= len(done)
        decisions += sum(rollout.decisions for rollout in done) if started else 0
        started = started or (time.perf_counter() if done else 0.0)
    passed = time.perf_counter() - started
    while out:
        out -= len(rollouts.ready(wait=True))
    return decisions / passed


def ray_overhead() -> None:
    """Compare a Ray worker with local play, on all cores and on a single one."""
    everywhere = os.sched_getaffinity(0)
    for cores in (everywhere, {min(everywhere)}):
        os.sched_setaffinity(0, cores)
        local = LocalBackend(_settings("rollout=local"), CPU)
        local.submit(RolloutRequest(0, 512, 0.05))
        local.ready(wait=True)
        with _ray("rollout.workers=1") as rollouts:
            pairs = []
            for _ in range(ROUNDS):
                alone = decisions_per_second(local, 512, SECONDS)
                pairs.append((alone, decisions_per_second(rollouts, 512, SECONDS)))
        os.sched_setaffinity(0, everywhere)
        best_local, best_ray = (round(max(rates)) for rates in zip(*pairs, strict=True))
        rates = {"cores": len(cores), "local": best_local, "ray": best_ray}
        report("ray_overhead", 1 - best_ray / best_local, "share", target=0.05, direction="at most", **rates)


def two_nodes() -> None:
    """Compare two one-core Ray nodes on this machine with one; the driver is on the first."""
    everywhere = os.sched_getaffinity(0)
    if len(everywhere) < 2:
        print("two_nodes: needs two cores", file=sys.stderr)
        return
    rates = []
    for nodes in (1, 2):
        os.sched_setaffinity(0, {min(everywhere)})  # inherited by all processes started from here on
        cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        try:
            if nodes == 2:
                os.sched_setaffinity(0, {max(everywhere)})
                cluster.add_node(num_cpus=1)
                os.sched_setaffinity(0, {min(everywhere)})
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
    """Measure the proportional set size of a rollout worker after playing."""
    with _ray("rollout.workers=1") as rollouts:
        decisions_per_second(rollouts, 512, SECONDS)
        (pid,) = named(os.getpid(), "ray::WorkerActor")
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    pss = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    report("worker_memory", pss * 1024 / system.MIB, "MiB", target=600, direction="at most")


FIGURES = (ray_overhead, two_nodes, worker_memory)
