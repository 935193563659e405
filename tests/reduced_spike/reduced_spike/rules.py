"""The deals of the reduced Spike; all else are the rules of `spike`.

The first eight cards of the deck are an order of two cards each of MAIN: four go to the hands, two are spike cards,
and as many may be bought as there are credits for. The next six, which equal dice bring into play, are the third
cards of MAIN and both zeros, in an order that follows from that of the first eight. Among the three rolls of a deal at
most one has equal dice: DICE lists them. The lot says who wins a full tie.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cards.batch import Rules
from spike import rules as whole
from spike.cards import CARDS, VALUES
from spike.state import Options as WholeOptions
from spike.state import blank as whole_blank

MAIN = (-8, -1, 2, 7)
DICE = np.array(
    [
        [[1, 2], [3, 4], [5, 6]],  # no equal dice
        [[3, 3], [1, 4], [2, 6]],  # new hand cards after round 1
        [[1, 5], [1, 1], [6, 4]],  # new hand and spike cards after round 2
        [[2, 3], [4, 6], [5, 5]],  # new hand cards before the showdown
    ],
    np.uint8,
)
LOTS = 2


def _cards(value: int) -> list[int]:
    return [int(card) for card in np.flatnonzero(value == VALUES)]


def _orders(values: tuple[int, ...]) -> list[tuple[int, ...]]:
    """All orders of two cards of each value: which of the two comes first is no difference."""
    return sorted(set(permutations(sorted(2 * values))))


def _fronts() -> NDArray[np.uint8]:
    """The first cards of the deck, `[orders, 14]`."""
    last = [_cards(value)[2] for value in MAIN] + _cards(0)
    tails = list(permutations(last))
    fronts = []
    for number, values in enumerate(_orders(MAIN)):
        seen = {value: iter(_cards(value)) for value in MAIN}
        # 7 has no common divisor with 720, so that neighbours in the list have different tails.
        fronts.append([next(seen[value]) for value in values] + list(tails[7 * number % len(tails)]))
    return np.array(fronts, np.uint8)


FRONTS = _fronts()
REST = np.setdiff1d(np.arange(CARDS), FRONTS[0]).astype(np.uint8)
DEALS = len(FRONTS) * len(DICE) * LOTS
_FRONT, _DICE = FRONTS.shape[1], len(DICE)


@dataclass(frozen=True)
class Options:
    """Rule options: `credits` of each seat before the ante of 2: 4 or 6, for one or two payments of 2."""

    credits: int = 4


def blank(options: Options) -> np.void:
    """A state that holds the options and nothing else. Raises ValueError for a bad option."""
    if isinstance(options.credits, bool) or options.credits not in (4, 6):
        raise ValueError(f"game.credits: 4 or 6, not {options.credits!r}")
    return whole_blank(WholeOptions(credits=options.credits, hands=1, raise_cap=1))


@njit
def deal(state: Any, seed: np.uint64) -> None:
    """Deal number `seed % DEALS` of the list."""
    number = np.int64(seed % np.uint64(DEALS))
    state.lot = number % LOTS
    dice = number // LOTS % _DICE
    front = number // (LOTS * _DICE)
    for roll in range(3):
        for die in range(2):
            state.dice[roll, die] = DICE[dice, roll, die]
    for position in range(CARDS):
        state.deck[position] = FRONTS[front, position] if position < _FRONT else REST[position - _FRONT]
    state.ordered = CARDS
    state.random = np.uint64(0)
    state.shuffle = np.uint64(0)
    state.players = 2
    state.credits[:] = 0
    state.stakes[:] = 0
    state.hands[:] = 0
    for seat in range(2):
        state.credits[seat] = state.start_credits
    state.winnings[:] = 0
    state.hands_won[:] = 0
    state.hands_played = 0
    state.second_pot = 0
    state.first = 0
    whole.open_hand(state)


RULES = Rules(deal, whole.legal, whole.apply, whole.observe, whole.over, whole.returns)
