"""Corellian Spike players without a network: `(state, random_bits) -> action`."""

from typing import Any

import numpy as np

from busso.cards.compiled.bits import has
from busso.cards.compiled.jit import njit
from busso.spike.cards import (
    BUY,
    DISCARD,
    FOLD,
    MATCH,
    NO_BUY,
    NO_CARD,
    RAISE,
    SWAP_LOWER,
    SWAP_SPIKE,
    VALUES,
    card_sum,
)
from busso.spike.rules import legal, to_match
from busso.spike.state import BET, BUYING

_MAX_RAISES = 3
_BUY_ABOVE = 3
# With a greater |sum| in rounds 0 to 3, matching a raise does not pay.
_HOPELESS_ABOVE = np.array([14, 11, 8, 5], np.int64)


@njit
def initial(state: Any, random_bits: np.uint64) -> int:
    """Play the initial policy of the published study: always match, never buy, discard the bought card."""
    if state.phase == BET:
        return MATCH
    return NO_BUY if state.phase == BUYING else DISCARD


@njit
def best_exchange(state: Any) -> int:
    """Return the exchange that leaves the seat to move with the smallest |sum|, the first of equal ones."""
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
    """Play soundly by rules.

    Buy if the |sum| is above 3, and keep the cards with the smallest |sum|; raise with a |sum| of at most 1, up to
    three raises in a betting round; fold a hopeless hand to a raise; otherwise match.
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
