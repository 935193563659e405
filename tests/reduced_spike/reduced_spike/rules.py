"""The deals of the reduced Spike; all else are the rules of `spike`.

The first eight cards of the deck are an order of two cards each of four values: four go to the hands, two are spike
cards, and two may be bought. The lot says who wins a full tie. No roll has equal dice: the new cards that these bring
would have to come from a list too long, or tell what the others hold.
"""

from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import Rules
from busso.cards.compiled.jit import njit
from busso.spike import rules as whole
from busso.spike.cards import CARDS, VALUES
from busso.spike.state import Options as WholeOptions
from busso.spike.state import blank as whole_blank

DEALT = (-8, -1, 2, 7)
LOTS = 2


def _orders() -> NDArray[np.uint8]:
    """The first cards of the deck, `[orders, 8]`; which of two equal cards comes first is no difference."""
    cards = {value: np.flatnonzero(value == VALUES).tolist() for value in DEALT}
    orders = []
    for values in sorted(set(permutations(2 * DEALT))):
        left = {value: iter(cards[value]) for value in DEALT}
        orders.append([next(left[value]) for value in values])
    return np.array(orders, np.uint8)


ORDERS = _orders()
REST = np.setdiff1d(np.arange(CARDS), ORDERS[0]).astype(np.uint8)
DEALS = len(ORDERS) * LOTS


@dataclass(frozen=True)
class Options:
    """Rule options: none."""


def blank(options: Options) -> np.void:
    """A state that holds the options: after the ante of 2 each seat has 2 more, for a raise or a card."""
    return whole_blank(WholeOptions(credits=4, hands=1, raise_cap=1))


@njit
def deal(state: Any, seed: np.uint64) -> None:
    """Deal number `seed % DEALS` of the list."""
    number = np.int64(seed % np.uint64(DEALS))
    state.lot = number % LOTS
    for position in range(CARDS):
        first = position < ORDERS.shape[1]
        state.deck[position] = ORDERS[number // LOTS, position] if first else REST[position - ORDERS.shape[1]]
    state.ordered = CARDS
    for roll in range(3):
        state.dice[roll, 0], state.dice[roll, 1] = 1, 2
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
