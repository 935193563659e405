"""Small runs with Ray: from games to a checkpoint, resumed, and with a worker that dies."""

import os
import signal
from pathlib import Path

import pytest

from tests.train.runs import settings, small
from train import checkpoint
from train.__main__ import main
from train.rollout import Rollout, Ticket, acting_network

pytestmark = pytest.mark.ray


def test_a_run_from_end_to_end_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ray_run = ["rollout=ray", "rollout.batch=32"]
    assert main(small(tmp_path, *ray_run, "episodes=160")) == 0
    assert main(small(tmp_path, *ray_run, "episodes=320")) == 0
    captured = capsys.readouterr()
    assert "ray: 1 workers" in captured.err and "resumed from" in captured.err and "random" in captured.out
    folder = tmp_path / "tressette" / "small" / "checkpoints"
    state = checkpoint.load(checkpoint.listed(folder)[0])
    assert state["counters"]["episodes"] == 320 and state["counters"]["env_steps"] == 320 * 40
    assert state["learner"]["updates"] == 320 * 40 // 2 // 64
    assert state["open_tickets"] == []


def test_workers_play_what_a_local_worker_plays_and_survive_a_death(tmp_path: Path) -> None:
    """Every ticket comes back once, whoever dies; the same ticket and weights give the same transitions."""
    import ray
    import torch

    from train.cluster import RayRollouts
    from train.rollout import LocalRollouts

    chosen = settings(tmp_path, "rollout=ray", "rollout.workers=2", "rollout.batch=32")
    weights = acting_network(chosen.load_game(), chosen, torch.device("cpu")).state_dict()
    rollouts = RayRollouts(chosen)
    try:
        # Asked before the tickets, because a worker does one thing after another.
        victims = ray.get([worker.pid.remote() for worker in rollouts._workers])
        rollouts.publish(0, weights)
        assert rollouts.room() == 4
        for k in range(4):
            rollouts.submit(Ticket(32 * k, 32, 0.5))
        assert rollouts.room() == 0
        os.kill(victims[0], signal.SIGKILL)
        done: list[Rollout] = []
        while len(done) < 4:
            done += rollouts.ready(wait=True)
        assert sorted(rollout.ticket.first for rollout in done) == [0, 32, 64, 96]
        assert ray.get(rollouts._workers[0].pid.remote()) != victims[0]
        local = LocalRollouts(chosen, torch.device("cpu"))
        local.publish(0, weights)
        for rollout in done:
            local.submit(rollout.ticket)
            (own,) = local.ready(wait=True)
            for a, b in zip(own.transitions, rollout.transitions, strict=True):
                assert (a == b).all()
        rollouts.evaluate(7, weights)
        ((tag, duels),) = rollouts.evaluated(wait=True)
        assert tag == 7 and duels["random"].wins.size == chosen.evaluation.deals
    finally:
        rollouts.close()


def test_more_gpus_than_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(small(tmp_path, "rollout=ray", "rollout.gpus_per_worker=99")) == 2
    assert "rollout.gpus_per_worker" in capsys.readouterr().err
