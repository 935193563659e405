"""The requests of a run: which episodes are played next, and which are being played."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from train.dqn.counters import Counters
from train.dqn.rollout.worker import RolloutRequest


class Requests:
    """Every episode of a run is given out until it has come back; what an interruption left comes first."""

    def __init__(self) -> None:
        self.in_flight: dict[int, RolloutRequest] = {}  # by first episode
        self.unplayed: list[RolloutRequest] = []  # given out before an interruption, and not come back

    def next(self, counters: Counters, games: int, left: int | None) -> RolloutRequest | None:
        """At most so many games, and `left` new episodes if that is a number; None when there is nothing to play.

        Who plays, and with which exploration, is left open.
        """
        if self.unplayed:
            request, *rest = self.unplayed[0].pieces(games)
            self.unplayed[:1] = rest
            return request
        count = games if left is None else min(games, left)
        if not count:
            return None
        first = counters.next_episode
        counters.next_episode += count
        return RolloutRequest(first, count, 0.0)

    def state_dict(self) -> list[list[int]]:
        """What has not come back: first episode, how many, attempt."""
        # What is played now may be what ends this start: the next one deals other games.
        out = [replace(request, attempt=request.attempt + 1) for request in self.in_flight.values()]
        return [[request.first, request.count, request.attempt] for request in (*self.unplayed, *out)]

    def load_state_dict(self, state: Any) -> None:
        """Play again what had not come back, as the same episodes."""
        # Checkpoints of older versions have no attempts.
        self.unplayed = [RolloutRequest(first, count, 0.0, *attempt) for first, count, *attempt in state]
