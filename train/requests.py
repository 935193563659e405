"""Requests of a run: which episodes are played next, when, and with which weights; its counters and rate limiter."""

from __future__ import annotations

import logging
import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from busso.train.learner.learner import Learner, epsilon
from busso.train.rollout.backend import RolloutBackend
from busso.train.rollout.request import Rollout, RolloutRequest
from busso.train.run.budget import Budget
from busso.train.settings.dqn import LearnerSettings, TrainSettings

_FLIGHTS = 4  # weights may be older than the limit by this multiple of the credit in flight
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
        floor = settings.learner.samples_floor if rollouts.concurrent else 1.0
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


@dataclass
class DqnCounters:
    """Progress of a run, saved with every checkpoint."""

    episodes: int = 0  # whose transitions have been inserted
    env_steps: int = 0  # decisions in these episodes
    inserted: int = 0  # transitions of these episodes, fewer than env_steps where forced moves are not learned from
    next_episode: int = 0  # first episode that has not been requested
    rollouts: int = 0  # received
    seconds: float = 0.0  # of training, over all starts of the run
    evaluated: int = -1  # env_steps of the newest evaluated weights
    return_sum: float = 0.0  # of the episode returns since the last log row, without those that are 0 by construction
    return_count: int = 0
    absolute_return_sum: float = 0.0  # of all episodes since the last log row
    row_episodes: int = 0
    row_env_steps: int = 0  # decisions in these episodes
    forgiven: float = 0.0  # updates that were due but will never be made (RateLimiter, rule 4)
    lag_sum: int = 0  # age of the rollouts' weights in updates, since the last log row
    lag_count: int = 0
    too_old: int = 0  # requests that are played again because their weights were too old
    idle_starts: int = 0  # consecutive starts that ended before anything was played or learned

    def count(self, rollout: Rollout, updates: int) -> None:
        """Count a rollout received after `updates` updates."""
        self.rollouts += 1
        self.episodes += rollout.request.count
        self.env_steps += rollout.decisions
        self.inserted += len(rollout.transitions.action)
        self.row_episodes += rollout.request.count
        self.row_env_steps += rollout.decisions
        mean, absolute = rollout.episode_return
        self.absolute_return_sum += absolute * rollout.request.count
        if not math.isnan(mean):
            self.return_sum += mean * rollout.request.count
            self.return_count += rollout.request.count
        self.lag_sum += updates - rollout.weights_version
        self.lag_count += 1

    def log_row(self) -> dict[str, float]:
        """Return the rollout curves since the last row and reset them."""
        row = {
            "rollout/episode_return": _ratio(self.return_sum, self.return_count),
            "rollout/absolute_return": _ratio(self.absolute_return_sum, self.row_episodes),
            "rollout/episode_length": _ratio(self.row_env_steps, self.row_episodes),
            "rollout/episodes": float(self.episodes),
            "rollout/too_old": float(self.too_old),
            "time/weights_lag": _ratio(self.lag_sum, self.lag_count),
        }
        self.return_sum, self.return_count, self.lag_sum, self.lag_count = 0.0, 0, 0, 0
        self.absolute_return_sum, self.row_episodes, self.row_env_steps = 0.0, 0, 0
        return row


def _ratio(total: float, count: int) -> float:
    return total / count if count else math.nan


@dataclass(frozen=True)
class RateLimiter:
    """Ratio of updates to new transitions, like the rate limiters of Reverb and Acme.

    1. Credit. A transition inserted into the replay buffer earns `replay_ratio` updates.
    2. Backlog. The updates due are the credit so far, less the updates made and those forgiven by rule 4. None is due
       while the buffer has fewer than `learning_starts` transitions, as it can after a run is resumed.
    3. Back-pressure. The backlog is full at one rollout's mean credit per worker. Above that no games are requested,
       and workers wait for the learner.
    4. Falling ratio, if `floor` is below 1. A rollout that would overfill the backlog keeps only the credit that fits,
       but at least the share `floor`. The rest is forgiven: those updates are never made. Workers then wait at twice
       the full backlog, which is reached only at the lowest ratio.
    """

    learner: LearnerSettings
    capacity: int  # of the replay buffer
    floor: float = 1.0  # minimum share of its credit that a rollout keeps

    @property
    def replay_ratio(self) -> float:
        """Updates per new transition."""
        return self.learner.samples_per_insert / self.learner.batch_size

    @property
    def falls(self) -> bool:
        """True if rule 4 applies."""
        return self.floor < 1

    def updates_due(self, counters: DqnCounters, held: int, updates: int) -> int:
        """Return the backlog after `updates` updates, with `held` transitions in the buffer (rule 2)."""
        if held < min(self.learner.learning_starts, self.capacity):
            return 0
        return max(0, int(counters.inserted * self.replay_ratio - counters.forgiven) - updates)

    def mean_credit(self, counters: DqnCounters) -> float:
        """Return the mean updates earned by a rollout of this run, before forgiveness."""
        return counters.inserted / counters.rollouts * self.replay_ratio if counters.rollouts else 0.0

    def full_backlog(self, workers: int, counters: DqnCounters) -> float:
        """Return the updates due at which the backlog is full (rule 3)."""
        return self.mean_credit(counters) * workers

    def most_due(self, workers: int, counters: DqnCounters) -> float:
        """Return the updates due above which no games are requested (rules 3 and 4)."""
        return self.full_backlog(workers, counters) * (2 if self.falls else 1)

    def forgiven(self, rows: int, due: int, full: float) -> float:
        """Return the updates that a rollout of `rows` forgoes, with `due` before it and a `full` backlog (rule 4)."""
        credit = rows * self.replay_ratio
        return credit - min(credit, max(self.floor * credit, full - due))

    def max_weights_age(self, limit: int, in_flight: int, counters: DqnCounters) -> float:
        """Return the maximum age in updates of a rollout's weights: `limit`, or more with many requests in flight.

        On a large cluster all other requests return while one is played, so its rollouts are older but no worse.
        """
        return max(limit, _FLIGHTS * in_flight * self.mean_credit(counters))
