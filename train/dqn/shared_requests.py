"""The requests of one of several replicas: they take episodes in turn, and all count the episodes of all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from command.settings.checks import MAX_COUNT
from train.dqn.counters import DqnCounters
from train.dqn.learner.learner import Learner
from train.dqn.requests import Requests
from train.dqn.rollout.backend import RolloutBackend
from train.dqn.rollout.request import Rollout, RolloutRequest
from train.run.budget import Budget
from train.settings.dqn import TrainSettings

if TYPE_CHECKING:
    from train.dqn.replicas.group import Group, Words


class SharedRequests(Requests):
    """All replicas call `take` at the same time and have the same counters after it, and so the same updates due.

    `save` is asked to write the replica's share of a checkpoint, before new rows come in. The first replica says when,
    by `save_shares`.
    """

    def __init__(
        self,
        settings: TrainSettings,
        rollouts: RolloutBackend,
        learner: Learner,
        budget: Budget,
        group: Group,
    ) -> None:
        super().__init__(settings, rollouts, learner, budget)
        self.save: Callable[[Words], None] = lambda words: None
        self._group = group
        self._limiter = replace(self._limiter, replicas=group.size)
        self._held = 0
        self._to_save: Words = {}  # the checkpoint whose shares are yet to be written
        group.last_words = self.last_words

    def held(self) -> int:
        """Transitions in all shares, were each as small as the smallest."""
        return self._held

    def save_shares(self) -> None:
        """In the next step the others write their shares of the checkpoint of now."""
        self._to_save = {"save": self.counters.episodes, "weights": self._learner.fingerprint()}

    def last_words(self) -> Words:
        """What the first replica says of a checkpoint, once."""
        words, self._to_save = self._to_save, {}
        return words

    def next(self) -> RolloutRequest | None:
        """The next request that was dealt to this replica."""
        return super().next() if self.unplayed else None

    def take(self, wait: bool) -> None:
        """Count the rollouts that are done here and elsewhere, insert those of here, and deal new requests.

        Raises BackendLostError when a replica is gone, EndedError once the first has ended the run.
        """
        taken = [(rollout, self._is_new_enough(rollout)) for rollout in self._rollouts.ready(wait)]
        kept = [rollout for rollout, new_enough in taken if new_enough]
        news = DqnCounters(too_old=len(taken) - len(kept))
        for rollout in kept:
            news.count(rollout, self._learner.updates)
        said = self._group.exchange(self._words(news, sum(len(rollout.transitions.action) for rollout in kept)))
        self.save(said[0])
        for rollout, new_enough in taken:
            del self.in_flight[rollout.request.first]
            if not new_enough:
                self.unplayed.append(rollout.request)
        for rollout in kept:
            self._learner.replay.add(rollout.transitions)
            if self.league is not None:
                self.league.count(rollout.request.member, rollout.league)
        for words in said:
            self.counters.add(words["news"])
        if any(words["news"]["rollouts"] for words in said):
            self._budget.start_clock()
        self._held = self._group.size * min(words["rows"] for words in said)
        self._deal([words["wants"] for words in said], [words["games"] for words in said])

    def _is_new_enough(self, rollout: Rollout) -> bool:
        most = self._settings.rollout.max_weights_age
        limit = self._limiter.max_weights_age(most, self._group.size * len(self.in_flight), self.counters)
        return self._learner.updates - rollout.weights_version <= limit

    def _words(self, news: DqnCounters, rows: int) -> Words:
        replay = self._learner.replay
        stock = 0 if self._settings.rollout.kind == "local" else 1  # so that a worker waits for no step
        return {
            "news": asdict(news),
            "rows": min(replay.capacity, replay.size + rows),
            "wants": max(0, self._rollouts.free_slots() + stock - len(self.unplayed)),
            "games": self._rollouts.games(),
            **self.last_words(),
        }

    def _deal(self, wants: list[int], games: list[int]) -> None:
        """Give each replica in turn a request of the next episodes, as long as one wants more."""
        for round_ in range(max(wants)):
            for rank, wanted in enumerate(wants):
                left = self._budget.episodes_left(self.counters.dealt)
                count = games[rank] if left is None else min(games[rank], left)
                if round_ < wanted and count:
                    if rank == self._group.rank:
                        self.unplayed.append(RolloutRequest(self.counters.next_episode, count, 0.0))
                    self.counters.next_episode += count

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume; the next `take` counts the rows of all. Until then the same updates are due for all."""
        super().load_state_dict(state)
        self._held = MAX_COUNT
