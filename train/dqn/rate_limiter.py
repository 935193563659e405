"""How learning keeps pace with playing: `samples_per_insert` ties updates to the transitions that were played."""

from __future__ import annotations

from dataclasses import dataclass

from train.dqn.counters import Counters
from train.settings.dqn import LearnerSettings

_FLIGHTS = 4  # rollouts may be as old as the updates that so many times what is in flight pays for


@dataclass(frozen=True)
class Pace:
    """Numbers of updates, for a run with these settings and a replay buffer of this capacity."""

    learner: LearnerSettings
    capacity: int

    def due(self, inserted: int, held: int, updates: int) -> int:
        """Updates that the transitions inserted so far pay for, less those that were made.

        None until the buffer has `held` learning_starts: a run may go on with one that is empty again.
        """
        if held < min(self.learner.learning_starts, self.capacity):
            return 0
        return max(0, int(inserted * self._per_insert()) - updates)

    def per_rollout(self, counters: Counters) -> float:
        """Updates that a request pays for, on average so far."""
        return counters.env_steps / counters.rollouts * self._per_insert() if counters.rollouts else 0.0

    def max_weights_age(self, limit: int, in_flight: int, counters: Counters) -> float:
        """In updates: `limit`, or more where much is in flight.

        On a wide cluster what comes back is older without being worse: while one request is played all others come in.
        """
        return max(limit, _FLIGHTS * in_flight * self.per_rollout(counters))

    def _per_insert(self) -> float:
        return self.learner.samples_per_insert / self.learner.batch_size
