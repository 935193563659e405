"""The requests of a run: which episodes are played next, when, and with which weights."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, replace
from typing import Any

from command.settings.checks import MAX_COUNT
from train.dqn.counters import DqnCounters
from train.dqn.learner.learner import Learner
from train.dqn.learner.schedules import epsilon
from train.dqn.rollout.backend import RolloutBackend
from train.dqn.rollout.league import League, has_league
from train.dqn.rollout.request import Rollout, RolloutRequest
from train.run.budget import Budget
from train.run.every import Every
from train.settings.dqn import LearnerSettings, TrainSettings
from train.settings.saved import counters_of_checkpoint

log = logging.getLogger("train")

UPDATES_AT_ONCE = 16  # between two looks at the rollouts
_NOTABLE = 1.25  # times more, or less, samples per insert are worth a line
_FLIGHTS = 4  # rollouts may be as old as the updates that this multiple of what is in flight pays for


@dataclass(frozen=True)
class RateLimiter:
    """How many updates are due: `samples_per_insert` ties them to the transitions that were played."""

    learner: LearnerSettings
    capacity: int  # of the replay buffer, of all replicas
    replicas: int = 1  # of the learner, each with a batch in every update
    floor: float = 1.0  # the least share of `samples_per_insert` that a rollout pays for

    def due(self, inserted: int, held: int, updates: int, forgiven: float = 0.0) -> int:
        """Updates that the transitions inserted so far pay for, less those that were made and those `forgiven`.

        None until the buffer has `held` learning_starts: that of a resumed run may be empty again.
        """
        if held < min(self.learner.learning_starts, self.capacity):
            return 0
        return max(0, int(inserted * self._per_insert() - forgiven) - updates)

    def forgiven(self, rows: int, due: int, ahead: float) -> float:
        """Updates that a rollout of `rows` need not pay for.

        All that would make more due than `ahead`, the learner's backlog when every worker waits for it: but for the
        share `floor`. So the learner is never without work, and workers wait only where it is full at that share.
        """
        full = rows * self._per_insert()
        return full - min(full, max(self.floor * full, ahead - due))

    def most_due(self, workers: int, counters: DqnCounters) -> float:
        """Updates that may be due while more games are played: what one request of each worker pays for.

        Twice as many where the price falls at that backlog: only at the lowest price are workers to wait.
        """
        return self.per_rollout(counters) * workers * self.replicas * (1 if self.floor == 1 else 2)

    def per_rollout(self, counters: DqnCounters) -> float:
        """Updates that a request pays for, on average so far."""
        return counters.env_steps / counters.rollouts * self._per_insert() if counters.rollouts else 0.0

    def max_weights_age(self, limit: int, in_flight: int, counters: DqnCounters) -> float:
        """In updates: `limit`, or more where much is in flight.

        On a wide cluster what comes back is older without being worse: while one request is played all others come in.
        """
        return max(limit, _FLIGHTS * in_flight * self.per_rollout(counters))

    def _per_insert(self) -> float:
        return self.learner.samples_per_insert / (self.learner.batch_size * self.replicas)


class Requests:
    """Asks the backend for every episode of a run until it has come back; what an interruption left comes first."""

    def __init__(self, settings: TrainSettings, rollouts: RolloutBackend, learner: Learner, budget: Budget) -> None:
        self.counters = DqnCounters()
        self.in_flight: dict[int, RolloutRequest] = {}  # by first episode
        self.unplayed: list[RolloutRequest] = []  # given out before an interruption, and not come back
        self.league = League(settings.league, settings.seed) if has_league(settings) else None
        self._settings, self._rollouts, self._learner, self._budget = settings, rollouts, learner, budget
        # Where the learner plays in turn no worker waits for it. Replicas have to have the same updates due.
        falls = settings.rollout.kind in ("ray", "threads") and settings.learner.replicas == 1
        floor = settings.learner.samples_floor if falls else 1.0
        self._limiter = RateLimiter(settings.learner, settings.replay.capacity, floor=floor)
        self._published = -1
        self._said, self._forgiven = settings.learner.samples_per_insert, 0.0  # at the last row

    def updates_due(self) -> int:
        """Updates that what was played pays for."""
        counters = self.counters
        made = self._learner.updates + counters.updates_offset
        return self._limiter.due(counters.env_steps, self.held(), made, counters.forgiven)

    def held(self) -> int:
        """Transitions in the buffer that may be learned from."""
        return self._learner.replay.size

    def resume_updates(self, replicas: int) -> None:
        """After `load_state_dict` of a run with another number of replicas: as many updates are due as then."""
        if replicas == self._limiter.replicas:
            return
        limiters = self._limiter, replace(self._limiter, replicas=replicas)
        now, then = (limiter.due(self.counters.env_steps, MAX_COUNT, 0) for limiter in limiters)
        self.counters.updates_offset += now - then

    @property
    def updates_at_once(self) -> int:
        """Updates between two looks at the rollouts: one where workers would wait for the look, not for the learner."""
        return UPDATES_AT_ONCE if self._limiter.floor == 1 or self._learner.device.type == "cuda" else 1

    def epsilon(self) -> float:
        """The exploration of what is asked for now."""
        explore = self._settings.exploration
        return epsilon(self._budget.spent(self.counters.episodes), explore.start, explore.end, explore.fraction)

    def join_league(self, every: Every) -> None:
        """Make the weights of now a member of the league, if there is one and it is time."""
        if self.league is not None and every.take(self.counters.episodes):
            self.league.join(self.counters.episodes, self._learner.inference_weights())
            self._rollouts.enrol(self.league.weights)

    def give_out(self) -> None:
        """Ask for rollouts, as long as the learner is not left behind (back-pressure)."""
        most = self._limiter.most_due(self._rollouts.workers(), self.counters)
        while self._rollouts.free_slots() > 0 and self.updates_due() <= most:
            request = self.next()
            if request is None:
                return
            self.in_flight[request.first] = request  # first: whatever fails from here on, it is not forgotten
            if self._published != self._learner.updates and self._rollouts.wants_weights():
                self._published = self._learner.updates
                self._rollouts.publish(self._published, self._learner.inference_weights())
            self._rollouts.submit(request)
            if self._settings.rollout.kind == "local":
                return

    def next(self) -> RolloutRequest | None:
        """The next request; None when there is nothing left to play."""
        games = self._rollouts.games()
        if self.unplayed:
            request, *rest = self.unplayed[0].pieces(games)
            self.unplayed[:1] = rest
        else:
            left = self._budget.episodes_left(self.counters.dealt)
            count = games if left is None else min(games, left)
            if not count:
                return None
            request = RolloutRequest(self.counters.next_episode, count, 0.0)
            self.counters.next_episode += count
        member = None if self.league is None else self.league.draw(request.first)
        return replace(request, epsilon=self.epsilon(), member=member)

    def take(self, wait: bool) -> None:
        """Insert the rollouts that are done into the replay buffer; with `wait`, wait for one a second at most."""
        while rollouts := self._rollouts.ready(wait):
            for rollout in rollouts:
                self._budget.start_clock()
                self.insert(rollout)
            if self._limiter.floor == 1:
                return
            wait = False

    def insert(self, rollout: Rollout) -> None:
        """Insert a rollout; one of weights that are too old is asked for again."""
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
        ahead = self._limiter.per_rollout(self.counters) * self._rollouts.workers()
        self.counters.forgiven += self._limiter.forgiven(len(rollout.transitions.action), due, ahead)
        if self.league is not None:
            self.league.count(rollout.request.member, rollout.league)

    def log_row(self) -> dict[str, float]:
        """The curves of the rollouts since the last row."""
        self._say_what_it_pays()
        row = self.counters.log_row() | {"rollout/epsilon": self.epsilon()}
        return row if self.league is None else row | self.league.log_row()

    def _say_what_it_pays(self) -> None:
        """A line on `samples_per_insert` since the last row, where that is another than was said last."""
        learner, rows = self._settings.learner, self.counters.row_env_steps
        before, self._forgiven = self._forgiven, self.counters.forgiven
        if not rows:
            return
        samples = learner.samples_per_insert - (self._forgiven - before) * learner.batch_size / rows
        if not 1 / _NOTABLE < samples / self._said < _NOTABLE:
            self._said, workers = samples, self._rollouts.workers()
            log.info(
                "learner.samples_per_insert: %.2g now, as many as the learner can make with %d workers",
                samples,
                workers,
            )

    def state_dict(self) -> dict[str, Any]:
        """Where the run stands, and what has not come back: first episode, how many, attempt."""
        # What is played now may be what ends this start: the next one deals other games.
        out = [*self.unplayed, *(request.again() for request in self.in_flight.values())]
        return {
            "counters": asdict(self.counters) | {"seconds": self._budget.seconds()},
            "open_requests": [[request.first, request.count, request.attempt] for request in out],
            "league": None if self.league is None else self.league.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from `state_dict`: what had not come back is played again, as the same episodes."""
        self.counters = counters_of_checkpoint(DqnCounters, state["counters"])
        self._forgiven = self.counters.forgiven
        self.unplayed = [RolloutRequest(first, count, 0.0, attempt) for first, count, attempt in state["open_requests"]]
        if self.league is not None:
            self.league.load_state_dict(state["league"])
