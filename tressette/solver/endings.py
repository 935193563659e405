"""Solved endings for search players, which play hands out until their last tricks."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import at
from busso.cards.compiled.jit import njit
from busso.cards.game import Games, States
from busso.tressette.cards import CARDS
from busso.tressette.players import greedy
from busso.tressette.rules import SEATS, apply
from busso.tressette.solver.double_dummy import TranspositionTable, card_values, points_near


@njit
def points_after(state: Any, card: int, tricks: int, guess: int, scratch: Any, table: TranspositionTable) -> int:
    """Return team 0's points after `card` with all hands open: `greedy` plays until `tricks` are left to solve.

    The value is exact if no more are left at once. `scratch` is a state to play in, `guess` the start of the search.
    """
    scratch[0] = state
    apply(scratch[0], card)
    while scratch[0].plays < CARDS - SEATS * tricks:
        apply(scratch[0], greedy(scratch[0], np.uint64(0)))
    return points_near(guess, scratch[0], table)


@njit(nogil=True)
def _solve_all(states: Any, games: Any, table: TranspositionTable, out: NDArray[np.float32]) -> None:
    values = np.empty(CARDS, np.int8)
    for k in range(games.size):
        card_values(at(states, games[k]), table, values)
        for card in range(CARDS):
            out[k, card] = values[card]


def solved_values(states: States, games: Games, table: TranspositionTable) -> NDArray[np.float32]:
    """Return the mover's team points after each card, with best play of all, `[games, cards]`; -1 if illegal."""
    out = np.empty((games.size, CARDS), np.float32)
    _solve_all(states, games, table, out)
    return out
