"""Games on threads of the learner's process: the same games whatever their number, and how all of it ends."""

import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cards.stopping import never
from tests.limits import seconds, until
from tests.train.runs import settings, small
from train.__main__ import main
from train.dqn.network.q_network import NetworkPlayer
from train.dqn.replay.buffer import ReplayBuffer
from train.dqn.rollout.backend import LocalBackend, RolloutBackend
from train.dqn.rollout.evaluator import Evaluator
from train.dqn.rollout.request import Rollout, RolloutRequest, Weights
from train.dqn.rollout.threads import ThreadsBackend
from train.dqn.rollout.worker import RolloutWorker
from train.run.checkpoint import checkpoint
from train.settings.dqn import TrainSettings

CPU = torch.device("cpu")
REQUESTS = [RolloutRequest(32 * k, 32, 0.3, attempt=k % 2) for k in range(8)]


def threads(tmp_path: Path, blocks: int, *overrides: str) -> TrainSettings:
    return settings(tmp_path, "rollout=threads", f"rollout.actor_threads={blocks}", *overrides)


def weights(chosen: TrainSettings) -> Weights:
    return RolloutWorker(chosen, CPU).network.float().state_dict()


def played(rollouts: RolloutBackend, requests: list[RolloutRequest]) -> dict[int, Rollout]:
    """What comes of the requests, by first episode, with as many out as there may be."""
    waiting, done = list(requests), {}
    while len(done) < len(requests):
        while waiting and rollouts.free_slots() > 0:
            rollouts.submit(waiting.pop(0))
        done |= {rollout.request.first: rollout for rollout in rollouts.ready(wait=True)}
    return done


def same(one: Rollout, other: Rollout) -> bool:
    assert (one.request, one.weights_version) == (other.request, other.weights_version)
    return all(np.array_equal(a, b) for a, b in zip(one.transitions, other.transitions, strict=True))


def test_the_same_games_whatever_the_number_of_threads(tmp_path: Path) -> None:
    """As `rollout=local` plays them: a block follows from its request and its weights alone."""
    local = LocalBackend(settings(tmp_path), CPU)
    given = weights(settings(tmp_path))
    local.publish(7, given)
    expected = {}
    for request in REQUESTS:
        local.submit(request)
        expected |= {rollout.request.first: rollout for rollout in local.ready(wait=True)}
    assert not same(expected[0], Rollout(REQUESTS[0], expected[32].transitions, 7, expected[32].episode_return))
    for count in (1, 2, 4):
        with closing(ThreadsBackend(threads(tmp_path, count), CPU)) as rollouts:
            assert rollouts.workers() == count and rollouts.free_slots() == 2 * count
            rollouts.publish(7, given)
            found = played(rollouts, REQUESTS)
        assert all(same(found[request.first], expected[request.first]) for request in REQUESTS), count


def test_a_request_is_played_with_the_newest_weights_at_its_start(tmp_path: Path) -> None:
    with closing(ThreadsBackend(threads(tmp_path, 2), CPU)) as rollouts:
        versions = []
        for version in range(3):
            rollouts.publish(version, weights(threads(tmp_path, 2)))
            versions += [rollout.weights_version for rollout in played(rollouts, REQUESTS[:3]).values()]
        assert versions == [0] * 3 + [1] * 3 + [2] * 3


def test_evaluations_are_those_of_the_local_backend(tmp_path: Path) -> None:
    chosen = threads(tmp_path, 1)
    with closing(ThreadsBackend(chosen, CPU)) as rollouts:
        rollouts.evaluate(5, weights(chosen), never)
        found: list[Any] = []
        until("an evaluation", lambda: found.extend(rollouts.evaluated(wait=True)) or found, 60)
    expected = Evaluator(chosen, CPU).duels(weights(chosen), "evaluation", chosen.evaluation.deals)
    assert found[0][0] == 5 and found[0][1].keys() == expected.keys()
    for name, duel in expected.items():
        assert found[0][1][name].points == duel.points


class BrokenRulesError(Exception):
    pass


@pytest.mark.parametrize("what", ["ready", "evaluated"])
def test_an_exception_in_a_thread_is_raised_as_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    broken = BrokenRulesError("seat 2")

    def act(player: NetworkPlayer, decisions: Any) -> Any:
        raise broken

    with closing(ThreadsBackend(threads(tmp_path, 2), CPU)) as rollouts:
        played(rollouts, REQUESTS[:1])
        monkeypatch.setattr(NetworkPlayer, "act", act)
        if what == "ready":
            rollouts.submit(REQUESTS[1])
        else:
            rollouts.evaluate(0, weights(threads(tmp_path, 2)), never)
        with pytest.raises(BrokenRulesError) as caught:
            until("the exception", lambda: getattr(rollouts, what)(wait=True) and None, 60)
        assert caught.value is broken


def test_closing_ends_threads_in_the_middle_of_their_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks that would take minutes, and an evaluation."""
    act = NetworkPlayer.act
    chosen, rounds = threads(tmp_path, 2), []

    def slowly(player: NetworkPlayer, decisions: Any) -> Any:
        rounds.append(decisions.games.size)
        time.sleep(1.0 if len(rounds) > 40 else 0.0)
        return act(player, decisions)

    rollouts = ThreadsBackend(chosen, CPU)
    played(rollouts, REQUESTS[:1])
    monkeypatch.setattr(NetworkPlayer, "act", slowly)
    for request in REQUESTS[:4]:
        rollouts.submit(request)
    rollouts.evaluate(0, weights(chosen), never)
    until("rounds of moves", lambda: len(rounds) > 41, 60)
    started = time.monotonic()
    rollouts.close()
    rollouts.close()  # twice is no harm
    assert time.monotonic() - started < seconds(10)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith(("block", "evaluation"))]


def test_a_run_whose_transitions_stay_on_the_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, but for its streams: what the player uploaded is what the buffer takes."""
    added: list[str] = []
    add = ReplayBuffer.add

    def stays(chosen: TrainSettings, device: torch.device, stays: bool, *more: Any) -> RolloutWorker:
        assert not stays
        return RolloutWorker(chosen, device, True, *more)

    def look(buffer: ReplayBuffer, transitions: Any) -> None:
        added.extend({type(column).__name__ for column in transitions})
        add(buffer, transitions)

    monkeypatch.setattr("train.dqn.rollout.threads.RolloutWorker", stays)
    monkeypatch.setattr(ReplayBuffer, "add", look)
    assert main(small(tmp_path, "rollout=threads", "rollout.actor_threads=2")) == 0
    assert set(added) == {"Tensor"} and len(added) == 8
    newest, *_ = checkpoint.listed(tmp_path / "tressette" / "small" / "checkpoints")
    assert checkpoint.load(newest)["counters"]["env_steps"] == 256 * 40
