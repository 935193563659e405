"""Plays hands on to their last tricks and solves these: shared by the search players."""

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
    """Points of team 0 after `card` with all hands open: `greedy` plays on until `tricks` are left, which are solved.

    With so few left at once, the card's exact value. `scratch` is a state to play in, `guess` where the search begins.
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
    """The points that the team to move gets after each card with best play of all, `[games, cards]`; -1 if not legal.

    All four hands of the states are taken as they are. The lock of Python is free meanwhile; a table serves one thread.
    """
    out = np.empty((games.size, CARDS), np.float32)
    _solve_all(states, games, table, out)
    return out
