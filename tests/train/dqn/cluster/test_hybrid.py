"""Threads beside the learner and Ray workers elsewhere feed one learner."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch
from ray.cluster_utils import Cluster

from tests.limits import until
from tests.train.dqn.test_threads import weights
from tests.train.runs import settings
from train.api import make_backend
from train.dqn.rollout.backend import BackendLostError, LocalBackend
from train.dqn.rollout.request import Rollout, RolloutRequest, Weights
from train.dqn.rollout.threads import ThreadsBackend
from train.dqn.rollout.threads_and_ray import HybridBackend
from train.dqn.trainer import DqnTrainer
from train.run.folder import RunFolder
from train.run.runner import Runner

CPU = torch.device("cpu")


class There(LocalBackend):
    """Stands for Ray: smaller requests, weights now and then, and it may be lost."""

    def __init__(self, tmp_path: Path) -> None:
        super().__init__(settings(tmp_path, "rollout.games=16"), CPU)
        self.played: list[RolloutRequest] = []
        self.versions: list[int] = []
        self.looks = 0
        self.lost = self.closed = False

    def wants_weights(self) -> bool:
        self.looks += 1
        return self.looks % 3 == 1

    def publish(self, version: int, weights: Weights) -> None:
        self.versions.append(version)
        super().publish(version, weights)

    def submit(self, request: RolloutRequest) -> None:
        self.played.append(request)
        super().submit(request)

    def ready(self, wait: bool) -> list[Rollout]:
        if self.lost:
            raise BackendLostError("rollout=ray", "gone")
        return super().ready(wait)

    def describe(self, stop_requested: Callable[[], bool]) -> str:
        return "others"

    def close(self) -> None:
        self.closed = True


def test_a_run_that_both_play_for(tmp_path: Path) -> None:
    chosen, there = settings(tmp_path, "rollout=threads", "rollout.actor_threads=1"), There(tmp_path)
    with RunFolder(chosen) as folder, closing(HybridBackend(ThreadsBackend(chosen, CPU), there)) as rollouts:
        says = rollouts.describe(lambda: False)
        assert says == "threads: 1 block of 32 games on CPU threads, values on the CPU; beside them others"
        trainer = DqnTrainer(chosen, folder, CPU, rollouts)
        assert Runner(trainer, folder, lambda: False).run()
    assert trainer.counters.episodes == 256 and trainer.counters.env_steps == 256 * 40
    assert there.closed and {request.count for request in there.played} <= {16, 256 % 16 or 16}
    assert 0 < sum(request.count for request in there.played) < 256
    assert 0 < len(there.versions) < trainer.learner.updates


def test_what_is_lost_there_is_said_before_anything_is_taken_here(tmp_path: Path) -> None:
    chosen, there = settings(tmp_path, "rollout=threads", "rollout.actor_threads=1"), There(tmp_path)
    here = ThreadsBackend(chosen, CPU)
    with closing(HybridBackend(here, there)) as rollouts:
        rollouts.publish(0, weights(chosen))
        assert rollouts.games() == 32 and rollouts.free_slots() == 3 and rollouts.workers() == 1
        for first in (0, 32):
            rollouts.submit(RolloutRequest(first, 32, 0.1))
        assert rollouts.games() == 16 and not there.played
        rollouts.submit(RolloutRequest(64, 16, 0.1))
        assert len(there.played) == 1
        until("two blocks", lambda: sum(future.done() for future in here._playing) == 2, 60)
        there.lost = True
        with pytest.raises(BackendLostError):
            rollouts.ready(wait=True)
        there.lost = False
        assert {rollout.request.first for rollout in rollouts.ready(wait=True)} == {0, 32, 64}


@pytest.mark.slow  # a cluster of two nodes
@pytest.mark.ray
def test_ray_workers_play_on_the_other_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two Ray nodes on this machine: as many workers as the second has CPUs, though the first has some, too."""
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
    try:
        cluster.add_node(num_cpus=1)
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        chosen = settings(tmp_path, "rollout=threads", "rollout.actor_threads=1", "rollout.nodes=2")
        with closing(make_backend(chosen, CPU)) as rollouts:
            assert isinstance(rollouts, HybridBackend)
            assert "beside them ray: 1 workers on 2 node(s), 2 batches of 32 each" in rollouts.describe(lambda: False)
            rollouts.publish(4, weights(chosen))
            until("a worker", lambda: rollouts.workers() == 2, 100)
            done: list[Any] = []
            for first in range(0, 128, 32):
                rollouts.submit(RolloutRequest(first, 32, 0.1))
            until("all rollouts", lambda: done.extend(rollouts.ready(wait=True)) or len(done) == 4, 100)
        assert {rollout.weights_version for rollout in done} == {4}
    finally:
        cluster.shutdown()
