"""The player `alpha_beta`: perfect information Monte Carlo over the exact solver.

Each sample is a deal that agrees with what the seat knows, with open hands. Every candidate card is played, then
`greedy` plays all seats until the last tricks, which are solved exactly. After a quarter and a half of the samples the
worse half of the cards is dropped, so more samples compare close cards (sequential halving: Karnin, Koren and Somekh,
2013, ICML).
"""

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba import types
from numpy.typing import NDArray

from busso.cards.base.bounds import bounded
from busso.cards.compiled.batch import at
from busso.cards.compiled.bits import bit, lowest, popcount
from busso.cards.compiled.jit import c_function, njit
from busso.cards.game import Game
from busso.cards.play import Actions
from busso.cards.player_specs import MOST_SAMPLES
from busso.cards.players import PlayerOptions, StochasticPlayer
from busso.tressette.cards import CARDS, RANKS, THIRDS
from busso.tressette.rules import POINTS, STATE, TRICKS
from busso.tressette.search.sampler import new_tables, prepare, sample
from busso.tressette.solver.double_dummy import TranspositionTable, middle, new_table
from busso.tressette.solver.endings import points_after
from busso.tressette.solver.moves import distinct
from busso.tressette.solver.positions import FRAMES, set_frame

_TABLE_BITS = 14  # 256 kB, which stays in a core's cache
# Python's own clocks cannot be asked from compiled code that holds no lock. By name: code with an address is not kept.
_CLOCK = int(time.CLOCK_MONOTONIC)
_clock_gettime = c_function("clock_gettime", types.int32(types.int32, types.voidptr))


@dataclass(frozen=True)
class AlphaBetaOptions(PlayerOptions):
    """What a decision may cost, and how many of the last tricks are solved.

    `ms` above 0 is a budget of time for each decision, in place of `samples`; then the choice is not reproducible.
    """

    samples: int = bounded(150, 1, MOST_SAMPLES)
    ms: float = bounded(0.0, 0.0, 1e9)
    tricks: int = bounded(5, 1, TRICKS)


def make(game: Game, options: AlphaBetaOptions) -> StochasticPlayer:
    """Plays the card with the best mean points of its team; of equal ones, that with the fewest thirds, the weakest.

    A single card, or several that come to the same, is played at once. By samples the choice follows from what the seat
    knows and the generator of the game alone; by time it depends on the machine too.
    """
    budget = options.samples, options.ms, options.tricks
    return StochasticPlayer(_choose_all, budget, new_tables(), np.zeros(2, STATE), new_table(_TABLE_BITS))


@njit(nogil=True)
def _choose_all(
    states: Any,
    games: Any,
    masks: Any,
    generators: Any,
    budget: Any,
    tables: Any,
    scratch: Any,
    table: TranspositionTable,
    actions: Actions,
) -> None:
    clock, totals = np.zeros(2, np.int64), np.empty(CARDS, np.int64)
    for k in range(games.size):
        state = at(states, games[k])
        actions[k] = _choose(state, budget, generators, games[k], tables[0], scratch, table, clock, totals)


@njit
def _choose(
    state: Any,
    budget: Any,
    generators: Any,
    game: int,
    tables: Any,
    scratch: Any,
    table: TranspositionTable,
    clock: Any,
    totals: Any,
) -> int:
    samples, ms, tricks = budget
    start = _milliseconds(clock) if ms > 0.0 else 0.0
    set_frame(state, table.frames[FRAMES])
    cards = distinct(table.frames[FRAMES])
    if popcount(cards) == 1:
        return lowest(cards)
    totals[:] = 0
    prepare(state, state.turn, tables)
    scratch[1] = state
    number, spent, halving = 0, 0.0, 0.25
    while spent < 1.0 and popcount(cards) > 1:
        if number > 0 and spent >= halving:
            cards = _better_half(cards, totals)
            halving *= 2.0
        sample(state, state.turn, tables, generators, game, scratch[1].hands)
        add_points(cards, tricks, scratch, table, totals)
        number += 1
        spent = (_milliseconds(clock) - start) / ms if ms > 0.0 else number / samples
    return best_card(cards, totals)


@njit
def _milliseconds(clock: NDArray[np.int64]) -> float:
    _clock_gettime(_CLOCK, clock.ctypes)
    return 1e3 * clock[0] + 1e-6 * clock[1]


@njit
def add_points(
    cards: np.uint64, tricks: int, scratch: Any, table: TranspositionTable, totals: NDArray[np.int64]
) -> None:
    """Add to `totals` what the team to move gets after each of `cards` if `scratch[1]` are the hands."""
    guess, team = middle(scratch[1]), scratch[1].turn & 1
    while cards != np.uint64(0):
        card = lowest(cards)
        cards &= cards - np.uint64(1)
        guess = points_after(scratch[1], card, tricks, guess, scratch, table)
        totals[card] += guess if team == 0 else POINTS - guess


@njit
def _is_better(card: int, other: int, totals: NDArray[np.int64]) -> bool:
    if totals[card] != totals[other]:
        return totals[card] > totals[other]
    return RANKS * THIRDS[card % RANKS] + card % RANKS < RANKS * THIRDS[other % RANKS] + other % RANKS


@njit
def best_card(cards: np.uint64, totals: NDArray[np.int64]) -> int:
    """The card with the greatest total; of equal ones that with the fewest thirds, then the weakest."""
    best = lowest(cards)
    while cards != np.uint64(0):
        if _is_better(lowest(cards), best, totals):
            best = lowest(cards)
        cards &= cards - np.uint64(1)
    return best


@njit
def _better_half(cards: np.uint64, totals: NDArray[np.int64]) -> np.uint64:
    """The best half of the cards, the one in the middle included."""
    kept = np.uint64(0)
    for _ in range((popcount(cards) + 1) // 2):
        best = bit(best_card(cards, totals))
        kept |= best
        cards ^= best
    return kept
