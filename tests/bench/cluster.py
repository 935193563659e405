"""Figures of a cluster: what Ray costs, what a second node brings, how long a checkpoint stops the learner."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import ray
import torch
from ray.cluster_utils import Cluster

from tests.bench.timing import report
from train import resources
from train.checkpoint import BackgroundWriter
from train.cluster import RayRollouts
from train.config import TrainSettings, compose
from train.loop import Trainer
from train.rollout import LocalRollouts, Rollouts, Ticket, acting_network
from train.run_folder import RunFolder

CPU = torch.device("cpu")
ROUNDS, SECONDS = 3, 8.0
CHECKPOINT_ROWS = 1_000_000


def _settings(*overrides: str) -> TrainSettings:
    return compose(TrainSettings, "train", overrides)


def _decisions_per_second(rollouts: Rollouts, batch: int) -> float:
    """With every worker kept busy, from the first rollout that came back."""
    first, decisions, started = 0, 0, 0.0
    while not started or time.perf_counter() - started < SECONDS:
        while rollouts.room() > 0:
            rollouts.submit(Ticket(first, batch, 0.05))
            first += batch
        done = sum(len(rollout.transitions.action) for rollout in rollouts.ready(wait=True))
        decisions += done if started else 0
        started = started or (time.perf_counter() if done else 0.0)
    passed = time.perf_counter() - started
    while rollouts.room() < rollouts.workers() * 2:
        rollouts.ready(wait=True)
    return decisions / passed


@contextmanager
def _ray(*overrides: str) -> Iterator[RayRollouts]:
    settings = _settings("rollout=ray", *overrides)
    rollouts = RayRollouts(settings)
    try:
        rollouts.publish(0, acting_network(settings.load_game(), settings, CPU).state_dict())
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
        local = LocalRollouts(_settings("rollout=local"), CPU)
        local.submit(Ticket(0, 512, 0.05))
        local.ready(wait=True)
        with _ray("rollout.workers=1") as rollouts:
            pairs = [(_decisions_per_second(local, 512), _decisions_per_second(rollouts, 512)) for _ in range(ROUNDS)]
        os.sched_setaffinity(0, everywhere)
        best_local, best_ray = (round(max(rates)) for rates in zip(*pairs, strict=True))
        rates = {"cores": len(cores), "local": best_local, "ray": best_ray}
        report("ray_overhead", 1 - best_ray / best_local, "share", target=0.05, direction="at most", **rates)


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
        pid = ray.get(rollouts._workers[0].actor.pid.remote())
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    pss = next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
    report("worker_memory", pss * 1024 / resources.MIB, "MiB", target=600, direction="at most")


def checkpoint_stop() -> None:
    """How long the learner stands still for a checkpoint with a full buffer, and how long the disk then takes."""
    with tempfile.TemporaryDirectory() as runs:
        settings = _settings("rollout=local", f"runs={runs}", f"replay.capacity={CHECKPOINT_ROWS}")
        with RunFolder(settings) as folder:
            trainer = Trainer(settings, folder, CPU)
            local = LocalRollouts(settings, CPU)
            local.submit(Ticket(0, 4096, 1.0))
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


FIGURES = (ray_overhead, two_nodes, worker_memory, checkpoint_stop)
