"""Requests of a run: which episodes are played next, when, and with which weights."""

import logging
from dataclasses import asdict, replace
from typing import Any

from busso.train.dqn.counters import DqnCounters
from busso.train.dqn.learner.learner import Learner
from busso.train.dqn.learner.schedules import epsilon
from busso.train.dqn.rate_limiter import RateLimiter
from busso.train.dqn.rollout.backend import RolloutBackend
from busso.train.dqn.rollout.request import Rollout, RolloutRequest
from busso.train.run.budget import Budget
from busso.train.settings.dqn import TrainSettings

log = logging.getLogger("train")

UPDATES_AT_ONCE = 16  # between two polls of the rollouts
_NOTABLE = 1.25  # factor of change in samples per insert that is logged


class RequestQueue:
    """Request queue of a run: each episode is requested until its rollout returns, interrupted ones first."""

    def __init__(self, settings: TrainSettings, rollouts: RolloutBackend, learner: Learner, budget: Budget) -> None:
        self.counters = DqnCounters()
        self.in_flight: dict[int, RolloutRequest] = {}  # by first episode
        self.unplayed: list[RolloutRequest] = []  # submitted before an interruption and not returned
        self._settings, self._rollouts, self._learner, self._budget = settings, rollouts, learner, budget
        # A local backend plays in the learner's process, so no worker waits for the learner.
        floor = settings.learner.samples_floor if settings.rollout.kind == "ray" else 1.0
        self._limiter = RateLimiter(settings.learner, settings.replay.capacity, floor=floor)
        self._published = -1
        self._said, self._forgiven, self._inserted = settings.learner.samples_per_insert, 0.0, 0  # as of the last row

    def updates_due(self) -> int:
        """Return the updates that past transitions have earned and that are not made yet."""
        return self._limiter.updates_due(self.counters, self._learner.replay.size, self._learner.updates)

    @property
    def updates_at_once(self) -> int:
        """Updates between two polls of the rollouts: one if workers would wait for the poll rather than the learner."""
        return UPDATES_AT_ONCE if not self._limiter.falls or self._learner.device.type == "cuda" else 1

    def epsilon(self) -> float:
        """Return the exploration rate of new requests."""
        explore = self._settings.exploration
        return epsilon(self._budget.spent(self.counters.episodes), explore.start, explore.end, explore.fraction)

    def submit_pending(self) -> None:
        """Submit requests until the backlog of updates is too large (back-pressure)."""
        most = self._limiter.most_due(self._rollouts.workers(), self.counters)
        while self._rollouts.free_slots() > 0 and self.updates_due() <= most:
            request = self.next()
            if request is None:
                return
            self.in_flight[request.first] = request  # recorded first, so that no failure below loses it
            if self._published != self._learner.updates and self._rollouts.wants_weights():
                self._published = self._learner.updates
                self._rollouts.publish(self._published, self._learner.inference_weights())
            self._rollouts.submit(request)
            if self._settings.rollout.kind == "local":
                return

    def next(self) -> RolloutRequest | None:
        """Return the next request, None if nothing is left to play."""
        games = self._settings.rollout.games
        if self.unplayed:
            request, *rest = self.unplayed[0].pieces(games)
            self.unplayed[:1] = rest
        else:
            left = self._budget.episodes_left(self.counters.next_episode)
            count = games if left is None else min(games, left)
            if not count:
                return None
            request = RolloutRequest(self.counters.next_episode, count, 0.0)
            self.counters.next_episode += count
        return replace(request, epsilon=self.epsilon())

    def take(self, wait: bool) -> None:
        """Insert finished rollouts into the replay buffer; with `wait`, wait up to a second for one."""
        while rollouts := self._rollouts.ready(wait):
            for rollout in rollouts:
                self._budget.start_clock()
                self.insert(rollout)
            if not self._limiter.falls:
                return
            wait = False

    def insert(self, rollout: Rollout) -> None:
        """Insert a rollout, or request it again if its weights are too old."""
        updates, most = self._learner.updates, self._settings.rollout.max_weights_age
        limit = self._limiter.max_weights_age(most, len(self.in_flight), self.counters)
        del self.in_flight[rollout.request.first]
        if updates - rollout.weights_version > limit:
            self.unplayed.append(rollout.request)
            self.counters.too_old += 1
            return
        due = self.updates_due()
        self._learner.replay.add(rollout.transitions)
        self.counters.count(rollout, updates)
        full = self._limiter.full_backlog(self._rollouts.workers(), self.counters)
        self.counters.forgiven += self._limiter.forgiven(len(rollout.transitions.action), due, full)

    def log_row(self) -> dict[str, float]:
        """Return the curves of the rollouts since the last row."""
        self._say_replay_ratio()
        return self.counters.log_row() | {"rollout/epsilon": self.epsilon()}

    def _say_replay_ratio(self) -> None:
        """Log the samples per insert since the last row if it differs notably from the last logged value."""
        learner, rows = self._settings.learner, self.counters.inserted - self._inserted
        before, self._forgiven, self._inserted = self._forgiven, self.counters.forgiven, self.counters.inserted
        if not rows:
            return
        samples = learner.samples_per_insert - (self._forgiven - before) * learner.batch_size / rows
        if not 1 / _NOTABLE < samples / self._said < _NOTABLE:
            self._said, workers = samples, self._rollouts.workers()
            log.info(
                "learner.samples_per_insert: now %.2g, the most the learner reaches with %d workers",
                samples,
                workers,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the position of the run and the pending requests: first episode, count, attempt."""
        # A game being played now may be what ends this start, so the next attempt deals other games.
        out = [*self.unplayed, *(request.again() for request in self.in_flight.values())]
        return {
            "counters": asdict(self.counters) | {"seconds": self._budget.seconds()},
            "open_requests": [[request.first, request.count, request.attempt] for request in out],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore `state_dict`. Unreturned requests are played again, as the same episodes."""
        self.counters = DqnCounters(**state["counters"])
        self._forgiven, self._inserted = self.counters.forgiven, self.counters.inserted
        self.unplayed = [RolloutRequest(first, count, 0.0, attempt) for first, count, attempt in state["open_requests"]]
