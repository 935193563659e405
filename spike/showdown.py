"""Showdown of Corellian Spike.

The smallest |sum| wins; ties are broken by a positive sum, then by the greater sum of the positive cards, then by the
greatest single card, then by the lot.
"""

from typing import Any

import numpy as np

from busso.cards.compiled.jit import njit
from busso.spike.cards import NO_CARD, VALUES

PURE_SABACC, PRIME_SABACC, YEE_HAA = 3, 2, 1


@njit
def card_sum(state: Any, seat: int) -> int:
    """Return the sum of the seat's hand cards and its spike card, if dealt."""
    total = np.int64(VALUES[state.hands[seat, 0]]) + VALUES[state.hands[seat, 1]]
    if state.spikes[seat] != NO_CARD:
        total += VALUES[state.spikes[seat]]
    return total


@njit
def special(low: int, high: int, spike: int) -> int:
    """Return the special hand of three values with low <= high: PURE_SABACC, PRIME_SABACC, YEE_HAA, or 0."""
    zeros = (low == 0) + (high == 0) + (spike == 0)
    if zeros == 2:
        return PURE_SABACC
    if zeros == 0 or low + high + spike != 0:
        return 0
    return PRIME_SABACC if max(high, spike) == 10 else YEE_HAA


@njit
def strength(state: Any, seat: int) -> int:
    """Return the strength of a hand: greater for the better hand, equal if only the lot decides."""
    low = int(VALUES[state.hands[seat, 0]])
    high = int(VALUES[state.hands[seat, 1]])
    spike = int(VALUES[state.spikes[seat]])
    total = low + high + spike
    key = special(low, high, spike) if state.special_hands else 0
    key = 32 * key + 30 - abs(total)
    key = 2 * key + (total > 0)
    key = 32 * key + max(low, 0) + max(high, 0) + max(spike, 0)
    return 16 * key + max(low, high, spike, 0)


@njit
def winner(state: Any) -> int:
    """Return the seat that wins the showdown among those still in."""
    best, tied = -1, 0
    for seat in range(state.players):
        if (state.in_hand >> seat) & 1:
            own = strength(state, seat)
            if own > best:
                best, tied = own, 1
            elif own == best:
                tied += 1
    place = state.lot % tied
    for seat in range(state.players):
        if (state.in_hand >> seat) & 1 and strength(state, seat) == best:
            if place == 0:
                return seat
            place -= 1
    return -1
