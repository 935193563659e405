"""Rate limiter: updates per game played, and back-pressure on the workers."""

from dataclasses import dataclass

from busso.train.dqn.counters import DqnCounters
from busso.train.settings.dqn import LearnerSettings

_FLIGHTS = 4  # weights may be older than the limit by this multiple of the credit in flight


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
