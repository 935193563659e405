"""Requests for games, with simulated workers: what is asked for again, and updates per game.

With `learner.samples_floor` below 1 a full backlog lowers the replay ratio, so that workers need not wait.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from busso.train.requests import RequestQueue
from busso.train.rollout.request import EpisodeReturn, Rollout, RolloutRequest
from busso.train.run.budget import Budget
from tests.train.runs import settings

ROWS, BATCH, WORKERS = 20_480, 1024, 4  # at 0.5 samples per insert a rollout pays for 10 updates
TICKS = 4000


def rollout_of(request: RolloutRequest, version: int = 0) -> Rollout:
    rows: Any = SimpleNamespace(action=range(ROWS))
    return Rollout(request, rows, ROWS, version, EpisodeReturn(0.0, 0.0))


class Workers:
    """Simulated workers: `speed` rollouts per tick, two requests each; `waited` counts ticks in which one had none."""

    def __init__(self, speed: float, concurrent: bool) -> None:
        self.speed, self.concurrent, self.played, self.waited = speed, concurrent, 0.0, 0
        self.most_out = self.most_due = 0  # greatest numbers of requests and of updates due
        self.asked: list[RolloutRequest] = []
        self.done: list[Rollout] = []

    def tick(self) -> None:
        """Play one tick."""
        self.waited += len(self.asked) < WORKERS
        self.played += self.speed * min(len(self.asked), WORKERS)
        while self.played >= 1 and self.asked:
            self.played -= 1
            self.done.append(rollout_of(self.asked.pop(0)))

    def workers(self) -> int:
        return WORKERS

    def free_slots(self) -> int:
        return 2 * WORKERS - len(self.asked) - len(self.done)

    def wants_weights(self) -> bool:
        return False

    def submit(self, request: RolloutRequest) -> None:
        self.asked.append(request)
        self.most_out = max(self.most_out, len(self.asked) + len(self.done))

    def ready(self, wait: bool) -> list[Rollout]:
        return [self.done.pop(0)] if self.done else []


class Learner:
    """Simulated learner: one update per tick."""

    def __init__(self) -> None:
        self.updates, self.device = 0, torch.device("cpu")
        self.replay = SimpleNamespace(size=10**6, add=lambda _: None)


def queue(
    tmp_path: Path, speed: float, *overrides: str, concurrent: bool = True
) -> tuple[RequestQueue, Workers, Learner]:
    chosen = settings(tmp_path, "rollout=ray", f"learner.batch_size={BATCH}", "episodes=100000000", *overrides)
    workers, learner = Workers(speed, concurrent), Learner()
    return RequestQueue(chosen, workers, learner, Budget(None, None)), workers, learner  # type: ignore[arg-type]


def simulated(tmp_path: Path, speed: float, *overrides: str) -> tuple[RequestQueue, Workers, float]:
    """Return a run's requests and workers after TICKS, and the samples per insert in its second half."""
    (requests, workers, learner), half = queue(tmp_path, speed, *overrides), 0
    for tick in range(TICKS):
        requests.submit_pending()
        requests.take(wait=False)
        workers.most_due = max(workers.most_due, requests.updates_due())
        learner.updates += min(1, requests.updates_due())
        workers.tick()
        if tick == TICKS // 2:
            half = requests.counters.env_steps
            workers.waited = 0
            before = learner.updates
    return requests, workers, (learner.updates - before) * BATCH / (requests.counters.env_steps - half)


FALLING = "learner.samples_floor=0.25"


@pytest.mark.parametrize(
    ("speed", "samples", "waits", "busy"),
    [
        (0.02, 0.5, False, 0.8),  # 0.8 updates per tick are due
        (0.05, 0.25, False, 1.0),  # 2: half as many
        (0.5, 0.125, True, 1.0),  # 20: at the lowest ratio 5 are due, still too many
    ],
)
def test_a_fast_producer(tmp_path: Path, speed: float, samples: float, waits: bool, busy: float) -> None:
    requests, workers, found = simulated(tmp_path, speed, FALLING)
    assert found == pytest.approx(samples, rel=0.02)
    assert (workers.waited > 0) == waits
    assert requests._learner.updates == pytest.approx(busy * TICKS, rel=0.03)


def test_without_a_floor_they_wait(tmp_path: Path) -> None:
    """Requests in flight are limited, and with them the rollouts in Ray's object store."""
    requests, workers, found = simulated(tmp_path, 0.05)
    assert found == pytest.approx(0.5, rel=0.02) and workers.waited and requests.counters.forgiven == 0
    # Playing may lead by one rollout of each worker, and the two of each in flight may arrive later.
    assert workers.most_out == 2 * WORKERS and workers.most_due <= 3 * WORKERS * 10


def test_what_it_pays_is_said_once_and_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    requests, _, _ = simulated(tmp_path, 0.05, FALLING)
    with caplog.at_level("INFO", logger="train"):
        requests.log_row()
        for _ in range(3):
            requests.counters.row_env_steps = 2 * ROWS  # these pay for 20 updates, of which 10 were forgiven
            requests.counters.forgiven += 10
            requests.log_row()
    (line,) = [record.getMessage() for record in caplog.records]
    assert "now 0.25" in line and f"{WORKERS} workers" in line
    again, _, _ = simulated(tmp_path, 0.05, FALLING)
    again.load_state_dict(requests.state_dict())
    assert again.counters.forgiven == requests.counters.forgiven > 0


def test_in_turn_nothing_falls(tmp_path: Path) -> None:
    requests, _, _ = queue(tmp_path, 1.0, FALLING, concurrent=False)
    assert not requests._limiter.falls and requests._limiter.forgiven(ROWS, 10**6, 0.0) == 0


def test_rollouts_of_weights_that_are_too_old_are_not_learned_from(tmp_path: Path) -> None:
    """The same episodes are requested again."""
    requests, _, learner = queue(tmp_path, 1.0, "rollout.max_weights_age=40")
    requests.submit_pending()
    first, second, *_ = requests.in_flight.values()
    learner.updates = 42
    requests.insert(rollout_of(first, version=1))
    requests.insert(rollout_of(second, version=2))
    assert requests.counters.too_old == 1 and requests.counters.episodes == second.count
    assert requests.next() == replace(first, epsilon=requests.epsilon())


def test_open_requests_keep_their_attempt_and_are_played_in_pieces(tmp_path: Path) -> None:
    """A backend of larger requests began some of them."""
    requests, _, _ = queue(tmp_path, 1.0, "rollout.games=32")
    requests.unplayed = [RolloutRequest(64, 80, 0.5, 3), RolloutRequest(200, 5, 0.5)]
    state = requests.state_dict()
    assert state["open_requests"] == [[64, 80, 3], [200, 5, 0]]
    again, _, _ = queue(tmp_path, 1.0, "rollout.games=32")
    again.load_state_dict(state)
    found = [replace(request, epsilon=1.0) for request in (again.next() for _ in range(4)) if request]
    pieces = [(64, 32, 1.0, 3), (96, 32, 1.0, 3), (128, 16, 1.0, 3), (200, 5, 1.0)]
    assert found == [RolloutRequest(*piece) for piece in pieces] and not again.unplayed
