"""A deal in play, with all its positions, so that decisions can be undone."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.errors import InputError
from busso.cards.game import Game, States
from busso.cards.play import Decisions

NO_SEEDS = np.zeros(1, np.uint64)  # of a hand that was recorded: nothing is drawn for it
_THE_ONE = np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)  # each is itself: arrays have no equality
class Move:
    """A seat's action, with the states `[1]` before and after it, which must not be changed."""

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
        """The actions so far."""
        return [move.action for move in self.moves]

    def may(self, action: int) -> bool:
        """Return whether the action is legal now."""
        return bool(self._mask >> action & 1)

    @property
    def legal(self) -> list[int]:
        """The actions of the seat to move."""
        return [action for action in range(self.game.actions) if self.may(action)]

    def decisions(self) -> Decisions:
        """The decision to be taken now, for a player."""
        return Decisions(self.game, self.state, _THE_ONE)

    def play(self, action: int) -> Move:
        """Play an action. Raises ValueError, one line, when it is not legal; then nothing has changed."""
        before, after = self.state, self.state.copy()
        if not 0 <= action < self.game.actions:
            raise InputError(self.game.name, f"unknown action {action}")
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
        """The hand as a record for `busso.evaluate.replay`."""
        return self.game.record(self._start[0], self.actions)


class Replayed(NamedTuple):
    """The hands of a record, played to their end, and what they came to, as a JSON object."""

    hands: list[Hand]
    outcome: dict[str, Any]


class DrawnHand(Hand):
    """A recorded hand of one seat whose cards come from the record, not from a generator; it cannot be played on.

    `dealt` of the record's `player` cards are there at the start, each `hit` draws one more.
    """

    def __init__(self, game: Game, start: States, record: dict[str, Any], dealt: int, hit: int) -> None:
        super().__init__(game, NO_SEEDS, start)
        self._record, self._dealt, self._hit = record, dealt, hit

    def play(self, action: int) -> Move:
        """Raises ValueError: the cards that another action would draw are not known."""
        raise InputError(self.game.name, "a recorded game is not played on")

    def record(self) -> dict[str, Any]:
        """The record, with the cards that the player has drawn so far."""
        return self._record | {"player": self._record["player"][: self._dealt + self.actions.count(self._hit)]}

    def add(self, action: int, after: States) -> None:
        """The next move, with the state `[1]` that came of it."""
        self.moves.append(Move(0, action, self.state, after.copy()))
        self._look()

    def amend(self, after: States) -> None:
        """The last move led to this state `[1]`: the house has played too."""
        self.moves[-1] = replace(self.moves[-1], after=after.copy())
        self._look()
