"""The best response to players whose choices are known, exactly, in a game whose chance is a list of deals.

A seat's information set is what it has seen and done at its own decisions so far: the sequence of its packed
observations and actions (perfect recall). No policy that sees no more than its observations, with or without a memory,
wins more than the best response against the same players on the same deals. The method walks through all states that
agree with an information set at once: the others move as they do, the seat tries every action on copies, and the
greatest SUM over the states of a set is what the set is worth, each with the chance of the others' choices.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game, States
from busso.cards.play import Actions, Decisions, Player

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
MOST_ROWS = 200_000  # states whose actions are tried at a time: 40 MB of Spike's, times its actions
_LOST = -1  # the sequence of a game in which something came that never comes against these players


class Chances(Protocol):
    """Players as probabilities."""

    def chances(self, decisions: Decisions) -> Floats:
        """The probability of each action in each decision, `[decisions, actions]`; 0 for illegal ones."""


def legal_table(legal: NDArray[np.uint64], actions: int) -> NDArray[np.bool_]:
    """Bit masks `[decisions]` as a table `[decisions, actions]`."""
    return (legal[:, None] >> np.arange(actions, dtype=np.uint64)) & np.uint64(1) != 0


class Certain:
    """A player that draws no lots: its only action in each decision.

    Players that draw lots take them from seeds, which a best response must not know: they need probabilities instead.
    """

    def __init__(self, player: Player, actions: int) -> None:
        self._player = player
        self._actions = actions

    def chances(self, decisions: Decisions) -> Floats:
        """See `Chances`. Raises ValueError when the player decides otherwise with other seeds."""
        first, second = (self._choices(decisions, name) for name in ("first lots", "second lots"))
        differ = np.flatnonzero(first != second)
        if differ.size:
            raise ValueError(
                f"the player draws lots (in {differ.size} of {first.size} decisions): an exact best response needs its "
                "probabilities, or one that always decides alike"
            )
        table = np.zeros((first.size, self._actions))
        table[np.arange(first.size), first] = 1.0
        return table

    def _choices(self, decisions: Decisions, name: str) -> Actions:
        self._player.begin(stream(0, name, 0, decisions.states.size))
        return self._player.act(decisions)


class Uniform:
    """The player `random`: all legal actions alike."""

    def __init__(self, actions: int) -> None:
        self._actions = actions

    def chances(self, decisions: Decisions) -> Floats:
        """See `Chances`."""
        table = legal_table(decisions.legal, self._actions)
        return table / table.sum(axis=1, keepdims=True)


class ResponsePlayer:
    """Plays a best response at its seat, and remembers for each game what it has seen and done.

    Where something comes that never comes against the players it responds to, it takes the lowest legal action from
    there on. It draws no lots. A batch must have it at one seat of a game alone.
    """

    def __init__(self, sets: RowNumbers, best: Actions, actions: int) -> None:
        self._sets, self._best, self._actions = sets, best, actions
        self._sequence = np.zeros(0, np.int64)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """See `Player`."""
        self._sequence = np.zeros(seeds.size, np.int64)

    def act(self, decisions: Decisions) -> Actions:
        """See `Player`."""
        found = self._sets.find(_keys(self._sequence[decisions.games], decisions))
        actions: Actions = legal_table(decisions.legal, self._actions).argmax(axis=1).astype(np.uint8)
        known = found >= 0
        actions[known] = self._best[found[known]]
        self._sequence[decisions.games] = np.where(known, _sequences(found, actions, self._actions), _LOST)
        return actions


@dataclass(frozen=True)
class BestResponse:
    """`value` is what the seat wins a game on average, in the game's unit; `sets` its information sets with a choice.

    `player` plays it, in the loop in which all games are played.
    """

    value: float
    sets: int
    player: ResponsePlayer


def best_response(game: Game, deals: States, seat: int, others: Chances, most_rows: int = MOST_ROWS) -> BestResponse:
    """The best response of `seat` to the `others` on all other seats, where all `deals` are equally likely.

    `deals` are the states in which games begin. Memory follows `most_rows`, not their number. Raises ValueError when
    players draw lots that nobody knows the chances of (see `Certain`), and when observations do not show what is legal.
    """
    search = _Search(game, seat, others, most_rows)
    nothing_done = np.zeros(deals.size, np.int64)
    (total,) = search.worth(deals.copy(), np.ones(deals.size), nothing_done, 0, 1)
    best = np.empty(search.sets.count, np.uint8)
    for first, actions in search.best:
        best[first : first + actions.size] = actions
    player = ResponsePlayer(search.sets, best, game.actions)
    return BestResponse(float(total) / deals.size, search.sets.count, player)


class RowNumbers:
    """Numbers rows `[n, words]` of uint64 0, 1, 2, ... in the order in which they first come."""

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}

    @property
    def count(self) -> int:
        """How many different rows have come."""
        return len(self._numbers)

    def number(self, rows: NDArray[np.uint64]) -> Integers:
        """The number of each row, `[n]`; rows that never came before get the next ones."""
        known = self._numbers
        return np.array([known.setdefault(row, len(known)) for row in _in_bytes(rows)], np.int64)

    def find(self, rows: NDArray[np.uint64]) -> Integers:
        """The number of each row, `[n]`; -1 for one that never came."""
        return np.array([self._numbers.get(row, -1) for row in _in_bytes(rows)], np.int64)


def _in_bytes(rows: NDArray[np.uint64]) -> list[bytes]:
    return np.ascontiguousarray(rows).view(f"V{rows.shape[1] * rows.itemsize}").ravel().tolist()


def _keys(sequence: Integers, decisions: Decisions) -> NDArray[np.uint64]:
    """What tells information sets apart: what the seat has done and seen before, by number, and what it sees now."""
    return np.column_stack([sequence.astype(np.uint64), decisions.observation])


def _sequences(sets: Integers, actions: NDArray[np.integer], width: int) -> Integers:
    """The numbers of the sequences that these actions in these information sets make; 0 is that nothing was done."""
    return 1 + sets * width + actions.astype(np.int64)


class _Search:
    """The walk. Each state of a batch has a weight, and the sequence of what the seat has seen and done before."""

    def __init__(self, game: Game, seat: int, others: Chances, most_rows: int) -> None:
        self._game, self._seat, self._others, self._most_rows = game, seat, others, most_rows
        self.sets = RowNumbers()
        self.best: list[tuple[int, Actions]] = []  # the actions of sets, from the first number on

    def worth(self, states: States, weight: Floats, sequence: Integers, first: int, count: int) -> Floats:
        """What the sequences `first` .. `first + count - 1` are worth, as weighted sums, `[count]`.

        The states are all that agree with one of these sequences; they are changed.
        """
        states, weight, sequence = self._others_move(states, weight, sequence)
        over = self._game.over(states)
        earned = self._game.returns(states, np.flatnonzero(over))[:, self._seat]
        worth = np.zeros(count)  # not from bincount, which makes whole numbers of no rows
        np.add.at(worth, sequence[over] - first, weight[over] * earned)
        states, weight, sequence = states[~over], weight[~over], sequence[~over]
        if states.size:
            parents, values = self._choose(states, weight, sequence)
            np.add.at(worth, parents - first, values)
        return worth

    def _choose(self, states: States, weight: Floats, sequence: Integers) -> tuple[Integers, Floats]:
        """The sequence before each information set that these states belong to, and what the set is worth."""
        decisions = Decisions(self._game, states, np.arange(states.size))
        first = self.sets.count
        numbers = self.sets.number(_keys(sequence, decisions)) - first
        sets, width = self.sets.count - first, self._game.actions
        parents, legal = np.empty(sets, np.int64), np.empty(sets, np.uint64)
        parents[numbers], legal[numbers] = sequence, decisions.legal
        if not np.array_equal(legal[numbers], decisions.legal):
            raise ValueError(f"{self._game.name}: what seat {self._seat} sees does not say which actions are legal")
        allowed = legal_table(legal, width)
        values = np.full((sets, width), -np.inf)
        for rows, begin, end in _pieces(numbers, sets, self._most_rows):
            at, action = np.nonzero(allowed[numbers[rows]])
            source = rows[at]
            after, sequences = states[source], _sequences(first + numbers[source], action, width)
            self._game.loops.apply(after, np.arange(after.size), action.astype(np.uint8))
            start, stop = 1 + (first + begin) * width, 1 + (first + end) * width
            found = self.worth(after, weight[source], sequences, start, stop - start).reshape(-1, width)
            values[begin:end] = np.where(allowed[begin:end], found, -np.inf)
        self.best.append((first, values.argmax(axis=1).astype(np.uint8)))
        return parents, values.max(axis=1)

    def _others_move(self, states: States, weight: Floats, sequence: Integers) -> tuple[States, Floats, Integers]:
        """Play on until the seat is to move or the game is over; a state is copied where the others may differ."""
        while True:
            waits = self._game.over(states) | (states["turn"] == self._seat)
            moving = np.flatnonzero(~waits)
            if not moving.size:
                return states, weight, sequence
            chances = self._others.chances(Decisions(self._game, states, moving))
            row, action = np.nonzero(chances)
            if row.size > moving.size:
                source = np.concatenate([np.flatnonzero(waits), moving[row]])
                states, weight, sequence = states[source], weight[source], sequence[source]
                moving = np.arange(source.size - row.size, source.size)
            weight[moving] *= chances[row, action]
            self._game.apply(states, action.astype(np.uint8), moving)


def _pieces(numbers: Integers, sets: int, most_rows: int) -> Iterator[tuple[Integers, int, int]]:
    """The rows of whole sets `begin` to `end - 1`, at most so many at a time unless one set has more."""
    rows = np.argsort(numbers, kind="stable")
    ends = np.cumsum(np.bincount(numbers, minlength=sets))
    begin, done = 0, 0
    while begin < sets:
        end = max(begin + 1, int(np.searchsorted(ends, done + most_rows, side="right")))
        yield rows[done : ends[end - 1]], begin, end
        begin, done = end, int(ends[end - 1])
