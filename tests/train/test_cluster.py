"""Small runs with Ray: from games to a checkpoint, resumed, and with a worker that dies."""

import copy
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import ray
import torch

from cards.splitmix import stream
from tests.train.runs import settings, small
from tests.train.test_command import start
from train import checkpoint
from train.__main__ import main
from train.checks import SettingsError
from train.cluster import RayRollouts
from train.config import TrainSettings
from train.rollout import LocalRollouts, Rollout, Ticket, Weights, acting_network
from train.signals import EXIT_REQUEUE

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


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 128 + signal.SIGTERM), (signal.SIGUSR1, EXIT_REQUEUE)])
def test_signal_leaves_a_checkpoint(tmp_path: Path, number: int, code: int) -> None:
    """Ray installs signal handlers of its own, which abort the process."""
    process = start(tmp_path, "rollout=ray", "rollout.batch=32")
    process.send_signal(number)
    _, text = process.communicate(timeout=120)
    assert process.returncode == code and "a checkpoint is in" in text
    (newest, *_) = checkpoint.listed(tmp_path / "tressette" / "small" / "checkpoints")
    state = checkpoint.load(newest)
    played = state["counters"]["episodes"] + sum(count for _, count in state["open_tickets"])
    assert played == state["counters"]["next_episode"]


def descendants(pid: int) -> list[int]:
    children = [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return children + [each for child in children for each in descendants(child)]


def test_term_for_the_whole_job_leaves_a_checkpoint(tmp_path: Path) -> None:
    """As of Slurm's scancel: Ray's processes get the signal with the trainer, and end while it saves."""
    process = start(tmp_path, "rollout=ray", "rollout.batch=32")
    everybody = descendants(process.pid)
    assert len(everybody) > 3
    for pid in [*everybody, process.pid]:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM and "Traceback" not in text and "a checkpoint is in" in text
    state = checkpoint.load(checkpoint.listed(tmp_path / "tressette" / "small" / "checkpoints")[0])
    played = state["counters"]["episodes"] + sum(count for _, count in state["open_tickets"])
    assert played == state["counters"]["next_episode"]
    time.sleep(1)
    assert not [pid for pid in everybody if Path(f"/proc/{pid}").exists()]


def test_cluster_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert main(small(tmp_path, "rollout=ray")) == 2
    assert "RAY_ADDRESS: no cluster answers at 127.0.0.1:1" in capsys.readouterr().err


def test_more_gpus_than_there_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(small(tmp_path, "rollout=ray", "rollout.gpus_per_worker=99")) == 2
    assert "rollout.gpus_per_worker" in capsys.readouterr().err


def weights_of(chosen: TrainSettings) -> Weights:
    return acting_network(chosen.load_game(), chosen, torch.device("cpu")).state_dict()


def until(rollouts: RayRollouts, condition: Callable[[], bool]) -> None:
    """Look after the workers until the condition holds; no tickets are out."""
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end
        assert not rollouts.ready(wait=True)


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> TrainSettings:
    ray_run = ("rollout=ray", "rollout.workers=2", "rollout.batch=32", "rollout.heartbeat_seconds=8")
    return settings(tmp_path_factory.mktemp("runs"), *ray_run)


@pytest.fixture(scope="module")
def rollouts(chosen: TrainSettings) -> Iterator[RayRollouts]:
    """Two workers that have started."""
    rollouts = RayRollouts(chosen)
    rollouts.publish(0, weights_of(chosen))
    assert rollouts.room() == 0  # nobody has started: no ticket waits for a worker that may never come
    until(rollouts, lambda: rollouts.workers() == 2)
    yield rollouts
    rollouts.close()


def pids(rollouts: RayRollouts) -> list[int]:
    return ray.get([member.actor.pid.remote() for member in rollouts._workers])


def all_of(rollouts: RayRollouts, tickets: int) -> list[Rollout]:
    """Play so many tickets of 32, whatever happens meanwhile."""
    done: list[Rollout] = []
    end = time.monotonic() + 120
    while len(done) < tickets:
        assert time.monotonic() < end
        done += rollouts.ready(wait=True)
    return done


def test_workers_play_what_a_local_worker_plays(chosen: TrainSettings, rollouts: RayRollouts) -> None:
    assert rollouts.room() == 4
    for k in range(4):
        rollouts.submit(Ticket(32 * k, 32, 0.5))
    assert rollouts.room() == 0
    done = all_of(rollouts, 4)
    assert sorted(rollout.ticket.first for rollout in done) == [0, 32, 64, 96]
    local = LocalRollouts(chosen, torch.device("cpu"))
    local.publish(0, weights_of(chosen))
    for rollout in done:
        local.submit(rollout.ticket)
        (own,) = local.ready(wait=True)
        for a, b in zip(own.transitions, rollout.transitions, strict=True):
            assert (a == b).all()


def test_new_weights_reach_a_worker_before_its_next_batch(rollouts: RayRollouts) -> None:
    """Two tickets wait at each worker; the second is played with weights that came after it was submitted."""
    weights = weights_of(rollouts._settings)
    for k in range(4):
        long = k < 2  # so that what is published now comes while they are played
        rollouts.submit(Ticket(10_000 * k, 8_000 if long else 32, 0.5))
    rollouts.publish(1, weights)
    rollouts.publish(2, weights)
    versions = {rollout.ticket.first: rollout.weights_version for rollout in all_of(rollouts, 4)}
    assert versions[20_000] == versions[30_000] == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_tickets_of_a_worker_that_dies_or_hangs_are_played_with_other_games(
    rollouts: RayRollouts, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    victim = pids(rollouts)[0]
    for k in range(4):
        rollouts.submit(Ticket(32 * k, 32, 0.5))
    os.kill(victim, number)
    done = all_of(rollouts, 4)
    assert sorted(rollout.ticket.first for rollout in done) == [0, 32, 64, 96]
    again = [rollout.ticket for rollout in done if rollout.ticket.attempt]
    assert again
    seeds = [stream(1, name, 0, 32) for name in ("episodes", "episodes, attempt 1")]
    assert not (seeds[0] == seeds[1]).any()
    until(rollouts, lambda: rollouts.workers() == 2)
    assert victim not in pids(rollouts) and not Path(f"/proc/{victim}").exists()
    assert "a Ray worker is replaced" in caplog.text
    assert ("no progress for 8 s" in caplog.text) == (number == signal.SIGSTOP)


def test_an_evaluator_that_dies_is_replaced(rollouts: RayRollouts) -> None:
    rollouts.evaluate(7, weights_of(rollouts._settings))
    ray.kill(rollouts._evaluator.actor)
    ((tag, duels),) = rollouts.evaluated(wait=True)
    assert tag == 7 and duels["random"].wins.size == rollouts._settings.evaluation.deals


def test_workers_that_cannot_start_end_the_run(tmp_path: Path, rollouts: RayRollouts) -> None:
    """Not for ever one after another: here the game of their settings is gone."""
    broken = copy.deepcopy(rollouts._settings)
    broken.game["name"] = "nothing"
    before, rollouts._settings = rollouts._settings, broken
    try:
        for worker in rollouts._workers:
            ray.kill(worker.actor)
        with pytest.raises(SettingsError, match="actors die one after another"):
            until(rollouts, lambda: False)
    finally:
        rollouts._settings = before
