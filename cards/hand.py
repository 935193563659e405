"""One deal as it is played: every position in it, so that one can go back."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cards.base.errors import InputError
from cards.game import Game, States
from cards.play import Decisions

_THE_ONE = np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)  # each is itself: arrays have no equality
class Move:
    """What a seat played, with the states `[1]` before and after it. They are not to be changed."""

    seat: int
    action: int
    before: States
    after: States


class Hand:
    """A deal in play, from the states `[1]` as dealt; `seeds` `[1]` are what all that is drawn for it follows from."""

    def __init__(self, game: Game, seeds: NDArray[np.uint64], start: States) -> None:
        self.game, self.seeds = game, seeds
        self.moves: list[Move] = []
        self._start = start.copy()
        self._look()

    def _look(self) -> None:
        self.over = bool(self.game.over(self.state)[0])
        self._mask = 0 if self.over else int(self.game.legal(self.state)[0])

    @property
    def start(self) -> States:
        """The deal, `[1]`."""
        return self._start

    @property
    def state(self) -> States:
        """The position now, `[1]`."""
        return self.moves[-1].after if self.moves else self._start

    @property
    def turn(self) -> int | None:
        """The seat to move; None when the hand is over."""
        return None if self.over else int(self.state["turn"][0])

    @property
    def actions(self) -> list[int]:
        """What was played."""
        return [move.action for move in self.moves]

    @property
    def legal(self) -> list[int]:
        """The actions of the seat to move."""
        return [action for action in range(self.game.actions) if self._mask >> action & 1]

    def decisions(self) -> Decisions:
        """The decision to be taken now, for a player."""
        return Decisions(self.game, self.state, _THE_ONE)

    def play(self, action: int) -> Move:
        """Play an action. Raises ValueError, one line, when it is not legal; then nothing has changed."""
        before, after = self.state, self.state.copy()
        if not 0 <= action < self.game.actions:
            raise InputError(self.game.name, f"there is no action {action}")
        self.game.apply(after, np.array([action], np.uint8))
        self.moves.append(Move(int(before["turn"][0]), action, before, after))
        self._look()
        return self.moves[-1]

    def back_to(self, number: int) -> None:
        """Take back all but the first `number` moves."""
        del self.moves[number:]
        self._look()

    def until(self, number: int) -> Hand:
        """The hand as it was after the first `number` moves, which may be played on by itself."""
        earlier = copy.copy(self)
        earlier.moves = self.moves[:number]
        earlier._look()
        return earlier

    def returns(self) -> list[float]:
        """The result of each seat, once the hand is over."""
        found: list[float] = self.game.returns(self.state)[0].tolist()
        return found

    def record(self) -> dict[str, Any]:
        """The hand as a record for `evaluate.replay`."""
        return self.game.record(self._start[0], self.actions)
