"""A game of two seats as a whole: every deal and every line of play, as sums over pairs of sequences.

A sequence is what a seat has seen and done at its decisions; a policy is a plan, the probability with which the seat
itself plays each of its sequences. What two plans win is linear in each, so averages of plans are averages of policies
(one is drawn at the beginning of each game), and best responses and exploitability are exact: von Stengel (1996),
"Efficient computation of behavior strategies", Games and Economic Behavior 14. With `exact_response`, which walks
through a game once for one seat, it shares the idea of an information set and the numbering of rows, no more.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game, States
from busso.cards.play import Decisions
from tests.reduced_spike.exact_response import Chances, RowNumbers, legal_table

Floats = NDArray[np.float64]
CHUNK = 500  # deals of which all lines of play are in memory at a time


class Seat:
    """The information sets of one seat; each has a sequence for every action of the game, legal or not."""

    def __init__(self) -> None:
        self.numbers = RowNumbers()
        self.parent: list[NDArray[np.int64]] = []  # the sequence before each set
        self.legal: list[NDArray[np.uint64]] = []
        self.example: list[States] = []  # a state of each set, to ask players in

    def number(self, decisions: Decisions, sequence: NDArray[np.int64]) -> NDArray[np.int64]:
        known = self.numbers.count
        found = self.numbers.number(np.column_stack([sequence.astype(np.uint64), decisions.observation]))
        new, row = np.unique(found, return_index=True)
        row = row[new >= known]
        self.parent.append(sequence[row])
        self.legal.append(decisions.legal[row])
        self.example.append(decisions.states[decisions.games[row]])
        return found


class SequenceForm:
    """All that `deals`, equally likely, can come to in a game of two seats in which one wins what the other loses."""

    def __init__(self, game: Game, deals: States) -> None:
        assert game.seats == 2 and game.total == 0
        self._game, self.width = game, game.actions
        seats = [Seat(), Seat()]
        ends: list[tuple[NDArray[np.int64], Floats]] = []
        for first in range(0, deals.size, CHUNK):
            self._walk(deals[first : first + CHUNK].copy(), seats, ends)
        self.examples = [np.concatenate(seat.example) for seat in seats]
        self.legal = [np.concatenate(seat.legal) for seat in seats]
        self._parents = [np.concatenate(seat.parent) for seat in seats]
        self._levels = [self._by_depth(parents) for parents in self._parents]
        self.sizes = [1 + parents.size * self.width for parents in self._parents]
        pairs = np.concatenate([pair for pair, _ in ends])
        won = np.concatenate([values for _, values in ends])
        keys, at = np.unique(pairs[:, 0] * self.sizes[1] + pairs[:, 1], return_inverse=True)
        self._pairs = np.divmod(keys, self.sizes[1])
        self._won = np.bincount(at, won) / deals.size  # by the first seat
        self.lines = len(pairs)

    def _walk(self, states: States, seats: list[Seat], ends: list[tuple[NDArray[np.int64], Floats]]) -> None:
        game = self._game
        done = np.zeros((states.size, 2), np.int64)  # the sequence of each seat
        while states.size:
            over = game.over(states)
            ends.append((done[over], game.returns(states[over])[:, 0].astype(np.float64)))
            states, done = states[~over], done[~over]
            decisions = Decisions(game, states, np.arange(states.size))
            turn = decisions.seats.astype(np.int64)
            sets = np.empty(states.size, np.int64)
            for seat in (0, 1):
                rows = np.flatnonzero(turn == seat)
                if rows.size:
                    sets[rows] = seats[seat].number(decisions.of(rows), done[rows, seat])
            row, action = np.nonzero(legal_table(decisions.legal, self.width))
            states, done, turn = states[row], done[row], turn[row]
            game.apply(states, action.astype(np.uint8))
            done[np.arange(row.size), turn] = 1 + sets[row] * self.width + action

    def _by_depth(self, parents: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """The sets by how many decisions of the seat came before."""
        levels = [np.flatnonzero(parents == 0)]
        before = (parents - 1) // self.width
        while levels[-1].size:
            levels.append(np.flatnonzero((parents > 0) & np.isin(before, levels[-1])))
        return levels[:-1]

    def choices(self, seat: int, player: Chances) -> Floats:
        """What a player without a memory does in each information set, `[sets, actions]`."""
        examples = self.examples[seat]
        return player.chances(Decisions(self._game, examples, np.arange(examples.size), self.legal[seat]))

    def plan(self, seat: int, choices: Floats) -> Floats:
        """The probability with which the seat itself plays each of its sequences, given that of every action."""
        plan = np.zeros(self.sizes[seat])
        plan[0] = 1.0
        table = plan[1:].reshape(-1, self.width)
        for sets in self._levels[seat]:
            table[sets] = choices[sets] * plan[self._parents[seat][sets]][:, None]
        return plan

    def value(self, first: Floats, second: Floats) -> float:
        """What the first seat wins a game on average, by these plans."""
        return float(self._won @ (first[self._pairs[0]] * second[self._pairs[1]]))

    def best(self, seat: int, other: Floats) -> tuple[float, Floats]:
        """The most that a seat can win against the other's plan, and a plan that wins it."""
        value, choices = self._best_choices(seat, other)
        return value, self.plan(seat, choices)

    def _best_choices(self, seat: int, other: Floats) -> tuple[float, Floats]:
        won = self._won if seat == 0 else -self._won
        worth = np.bincount(self._pairs[seat], won * other[self._pairs[1 - seat]], minlength=self.sizes[seat])
        table = worth[1:].reshape(-1, self.width)
        allowed = legal_table(self.legal[seat], self.width)
        choices = np.zeros(table.shape)
        for sets in reversed(self._levels[seat]):
            values = np.where(allowed[sets], table[sets], -np.inf)
            np.add.at(worth, self._parents[seat][sets], values.max(axis=1))
            choices[sets, values.argmax(axis=1)] = 1.0
        return float(worth[0]), choices

    def nash_conv(self, first: Floats, second: Floats) -> float:
        """What both seats could win in addition by best responses; 0 for an equilibrium, never less."""
        return self._best_choices(0, second)[0] + self._best_choices(1, first)[0]
