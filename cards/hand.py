"""A deal in play that keeps all its positions, so that moves can be undone."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.game import Game, States
from busso.cards.play import Decisions

NO_SEEDS = np.zeros(1, np.uint64)  # for a recorded hand, which draws nothing
_THE_ONE = np.zeros(1, np.int64)


@dataclass(frozen=True, eq=False)  # compared by identity: arrays have no equality
class Move:
    """A seat's action, with the states `[1]` before and after it, which must not be modified."""

    seat: int
    action: int
    before: States
    after: States


class Hand:
    """Deal in play, from the state `[1]` after the deal, `start`; all that is drawn follows from `seeds`, `[1]`."""

    def __init__(self, game: Game, seeds: NDArray[np.uint64], start: States) -> None:
        self.game, self.seeds = game, seeds
        self.moves: list[Move] = []
        self.start = start.copy()
        self._look()

    def _look(self) -> None:
        self.over = bool(self.game.over(self.state)[0])
        self._mask = 0 if self.over else int(self.game.legal(self.state)[0])

    @property
    def state(self) -> States:
        """The current position, `[1]`."""
        return self.moves[-1].after if self.moves else self.start

    @property
    def turn(self) -> int | None:
        """The seat to move; None if the hand is over."""
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
        """The legal actions of the seat to move."""
        return [action for action in range(self.game.actions) if self.may(action)]

    def decisions(self) -> Decisions:
        """Return the current decision, for a player."""
        return Decisions(self.game, self.state, _THE_ONE)

    def play(self, action: int) -> Move:
        """Play an action. Raises ValueError, in one line, if it is illegal, and then changes nothing."""
        before, after = self.state, self.state.copy()
        if not 0 <= action < self.game.actions:
            raise InputError(self.game.name, f"unknown action {action}")
        self.game.apply(after, np.array([action], np.uint8))
        self.moves.append(Move(int(before["turn"][0]), action, before, after))
        self._look()
        return self.moves[-1]

    def back_to(self, number: int) -> None:
        """Undo all but the first `number` moves."""
        del self.moves[number:]
        self._look()

    def until(self, number: int) -> Hand:
        """Return an independent copy of the hand after its first `number` moves."""
        earlier = copy.copy(self)
        earlier.moves = self.moves[:number]
        earlier._look()
        return earlier

    def returns(self) -> list[float]:
        """Return the result of each seat of a finished hand."""
        found: list[float] = self.game.returns(self.state)[0].tolist()
        return found

    def record(self) -> dict[str, Any]:
        """Return the hand as a record for `busso.evaluate.replay`."""
        return self.game.record(self.start[0], self.actions)


class Replayed(NamedTuple):
    """Hands of a record, played to the end, and their outcome as a JSON object."""

    hands: list[Hand]
    outcome: dict[str, Any]


def shown_cards(hand: Hand, house: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the player's cards and those that the house shows: its first, and all once the hand is over."""
    record = hand.record()
    return tuple(record["player"]), tuple(record[house] if hand.over else record[house][:1])


class DrawnHand(Hand):
    """Recorded one-seat hand that cannot be continued: it has `dealt` of the record's cards, and one more per `hit`."""

    def __init__(self, game: Game, start: States, record: dict[str, Any], dealt: int, hit: int) -> None:
        super().__init__(game, NO_SEEDS, start)
        self._record, self._dealt, self._hit = record, dealt, hit

    def play(self, action: int) -> Move:
        """Raise ValueError: the cards that another action would draw are unknown."""
        raise InputError(self.game.name, "a recorded game cannot be continued")

    def record(self) -> dict[str, Any]:
        """Return the record, with the player's cards drawn so far."""
        return self._record | {"player": self._record["player"][: self._dealt + self.actions.count(self._hit)]}

    def add(self, action: int, after: States) -> None:
        """Append a move with the state `[1]` after it."""
        self.moves.append(Move(0, action, self.state, after.copy()))
        self._look()

    def amend(self, after: States) -> None:
        """Replace the state `[1]` after the last move, once the house has played."""
        self.moves[-1] = replace(self.moves[-1], after=after.copy())
        self._look()
