"""Advice by the solver of open hands: the last tricks over all possible hands, or the true hands on request."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from busso.cards.base.bounds import bounded
from busso.cards.game import Game, States
from busso.cards.player_specs import MOST_SAMPLES
from busso.cards.players import PlayerOptions
from busso.cards.presentation import Adviser
from busso.tressette.cards import CARDS
from busso.tressette.rules import POINTS, SEATS, STATE, TRICKS
from busso.tressette.search.cheating import CheatingOptions
from busso.tressette.search.knowledge import keeps_caps
from busso.tressette.search.sampler import deal_of, new_tables, prepare, sampled_states
from busso.tressette.solver.double_dummy import middle, new_table
from busso.tressette.solver.endings import points_after, solved_values

_TABLE_BITS = 18
_THE_ONE = np.zeros(1, np.int64)
_KNOWN_TRICKS = 8  # with more left a single position takes long


@dataclass(frozen=True)
class ExactOptions(PlayerOptions):
    """`exact` of Tressette: with at most `tricks` left, over all hands there can be, or over `samples` of them."""

    tricks: int = bounded(6, 1, TRICKS)
    samples: int = bounded(200, 1, MOST_SAMPLES)


class EndgameAdviser:
    """The mean points of the team after each card over hands that agree with what the seat knows, each solved exactly.

    All hands there can be are taken where they are no more than `samples`, else `samples` are drawn. In each every seat
    then plays as if all hands were open, the seat itself too: that is exact where only one is possible, and else
    flatters cards whose right continuation no seat could know (strategy fusion: Frank and Basin, 1998). Before the last
    `tricks` nothing is known. See `Adviser`.
    """

    unit = "points"

    def __init__(self, options: ExactOptions) -> None:
        self._options, self._table = options, new_table(_TABLE_BITS)

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        if tricks_left(state) > self._options.tricks:
            return np.full(CARDS, np.nan)
        worlds = possible_hands(state, self._options.samples)
        if worlds is None:
            worlds = sampled_states(state, _THE_ONE, self._options.samples, generator.copy())
        values = solved_values(worlds, np.arange(worlds.size), self._table).mean(axis=0).astype(np.float64)
        return np.where(values < 0, np.nan, values)


class KnownHands:
    """An adviser, but for positions in which its seat can tell where every card lies: those are solved.

    See `Adviser`.
    """

    def __init__(self, adviser: Adviser) -> None:
        self._adviser, self._table = adviser, new_table(_TABLE_BITS)
        self.unit = adviser.unit

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        if tricks_left(state) <= _KNOWN_TRICKS and (worlds := possible_hands(state, 1)) is not None:
            values = solved_values(worlds, _THE_ONE, self._table)[0].astype(np.float64)
            return np.where(values < 0, np.nan, values)
        return self._adviser.values(game, state, generator)


class Cheating:
    """Points of the team after each card with all hands AS THEY ARE, which no seat could know. See `Adviser`."""

    unit = "points"

    def __init__(self, options: CheatingOptions) -> None:
        self._tricks, self._table, self._scratch = options.tricks, new_table(_TABLE_BITS), np.zeros(1, STATE)

    def values(self, game: Game, state: States, generator: NDArray[np.uint64]) -> NDArray[np.float64]:
        values, mask, second = np.full(CARDS, np.nan), int(game.legal(state)[0]), int(state["turn"][0]) & 1
        for card in range(CARDS):
            if mask >> card & 1:
                points = points_after(state[0], card, self._tricks, middle(state[0]), self._scratch, self._table)
                values[card] = POINTS - points if second else points
        return values


def refined(adviser: Adviser) -> Adviser:
    """The adviser, but positions in which its seat can tell where every card lies are solved, if it counts points."""
    return KnownHands(adviser) if adviser.unit == "points" else adviser


def tricks_left(state: States) -> int:
    """Tricks of the hand that are not over, with the one on the table."""
    return -(-(CARDS - int(state["plays"][0])) // SEATS)


def possible_hands(state: States, most: int) -> States | None:
    """All states `[worlds]` that the seat to move may think it is in; None where they are more than `most`."""
    tables, seat = new_tables(), int(state["turn"][0])
    count = int(prepare(state[0], seat, tables[0]))
    if count > most:
        return None
    worlds, possible = np.repeat(state, count), np.zeros(count, np.bool_)
    for number in range(count):
        hands = worlds[number]["hands"]
        deal_of(number, seat, tables[0], hands)
        possible[number] = keeps_caps(tables[0], hands, seat)
    return worlds[possible]
