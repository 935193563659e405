"""The rate limiter: how many updates a run makes for the games that it plays, and when games wait for updates."""

from __future__ import annotations

from dataclasses import dataclass

from busso.train.dqn.counters import DqnCounters
from busso.train.settings.dqn import LearnerSettings

_FLIGHTS = 4  # weights may be older than the limit by the credit of this multiple of what is in flight


@dataclass(frozen=True)
class RateLimiter:
    """Ties updates to new transitions, like the rate limiters of Reverb and Acme.

    1. Credit. A transition that enters the replay buffer earns `replay_ratio` updates.
    2. Backlog. The updates due are the credit so far, less updates made, less updates forgiven by rule 4. None is due
       while the buffer has fewer than `learning_starts` transitions; that of a resumed run may be empty again.
    3. Back-pressure. The backlog is full at the mean credit of one rollout for each worker. Above that no games are
       asked for, and workers wait for the learner.
    4. Falling ratio, if `floor` is below 1. A rollout that would overfill the backlog keeps only the credit that fits,
       but at least the share `floor`. The rest is forgiven: those updates are never made. Workers then wait at twice
       the full backlog, which is reached only at the lowest ratio.
    """

    learner: LearnerSettings
    capacity: int  # of the replay buffer
    floor: float = 1.0  # the least share of its credit that a rollout keeps

    @property
    def replay_ratio(self) -> float:
        """Updates for each new transition."""
        return self.learner.samples_per_insert / self.learner.batch_size

    @property
    def falls(self) -> bool:
        """True while rule 4 is in force."""
        return self.floor < 1

    def updates_due(self, counters: DqnCounters, held: int, updates: int) -> int:
        """The backlog of a learner that has made `updates`, with `held` transitions in the buffer (rule 2)."""
        if held < min(self.learner.learning_starts, self.capacity):
            return 0
        return max(0, int(counters.inserted * self.replay_ratio - counters.forgiven) - updates)

    def mean_credit(self, counters: DqnCounters) -> float:
        """Updates that a rollout of this run has earned on average, before anything was forgiven."""
        return counters.inserted / counters.rollouts * self.replay_ratio if counters.rollouts else 0.0

    def full_backlog(self, workers: int, counters: DqnCounters) -> float:
        """Updates due at which the backlog is full (rule 3)."""
        return self.mean_credit(counters) * workers

    def most_due(self, workers: int, counters: DqnCounters) -> float:
        """Updates due above which no games are asked for (rules 3 and 4)."""
        return self.full_backlog(workers, counters) * (2 if self.falls else 1)

    def forgiven(self, rows: int, due: int, full: float) -> float:
        """Updates forgiven of a rollout of `rows` transitions, with `due` before it and a `full` backlog (rule 4)."""
        credit = rows * self.replay_ratio
        return credit - min(credit, max(self.floor * credit, full - due))

    def max_weights_age(self, limit: int, in_flight: int, counters: DqnCounters) -> float:
        """Return the maximum age in updates of a rollout's weights: `limit`, or more with many requests in flight.

        While one request of a wide cluster is played, all others come in. So its rollouts are older, but no worse.
        """
        return max(limit, _FLIGHTS * in_flight * self.mean_credit(counters))
