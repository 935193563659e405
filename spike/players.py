"""Players of Corellian Spike without a network: `(state, random_bits) -> action`."""

from typing import Any

import numpy as np

from busso.cards.compiled.bits import has
from busso.cards.compiled.jit import njit
from busso.spike.cards import BUY, DISCARD, FOLD, MATCH, NO_BUY, NO_CARD, RAISE, SWAP_LOWER, SWAP_SPIKE, VALUES
from busso.spike.rules import legal, to_match
from busso.spike.showdown import card_sum
from busso.spike.state import BET, BUYING

_MAX_RAISES = 3
_BUY_ABOVE = 3
# With a |sum| above this, in rounds 0 to 3, a raise is not worth matching.
_HOPELESS_ABOVE = np.array([14, 11, 8, 5], np.int64)


@njit
def initial(state: Any, random_bits: np.uint64) -> int:
    """The policy from which the published study starts: always match, never buy, discard what was bought."""
    if state.phase == BET:
        return MATCH
    return NO_BUY if state.phase == BUYING else DISCARD


@njit
def best_exchange(state: Any) -> int:
    """The exchange that leaves the seat to move with the smallest |sum|; of equal ones the first."""
    seat = state.turn
    own = card_sum(state, seat)
    best, smallest = DISCARD, abs(own)
    for place in range(3):
        card = state.spikes[seat] if place == 0 else state.hands[seat, place - 1]
        total = abs(own + VALUES[state.bought] - VALUES[card])
        if total < smallest:
            best, smallest = (SWAP_SPIKE if place == 0 else SWAP_LOWER + place - 1), total
    return best


@njit
def cautious(state: Any, random_bits: np.uint64) -> int:
    """A sound rule player.

    Buys when its |sum| is above 3 and keeps whatever leaves the smallest |sum|; raises with a |sum| of at most 1, up to
    three raises in a betting round; folds a hopeless hand to a raise; else matches.
    """
    total = abs(card_sum(state, state.turn))
    if state.bought != NO_CARD:
        return best_exchange(state)
    if state.phase == BUYING:
        return BUY if total > _BUY_ABOVE else NO_BUY
    if total <= 1 and state.raises < _MAX_RAISES and has(legal(state), RAISE):
        return RAISE
    if to_match(state) > 0 and total > _HOPELESS_ABOVE[state.round]:
        return FOLD
    return MATCH


POLICIES = {"initial": initial, "cautious": cautious}
