"""Corellian Spike cards by rising value (two zeros, three each of -10 to -1 and 1 to 10), actions, and the showdown.

The smallest |sum| wins; ties are broken by a positive sum, then by the greater sum of the positive cards, then by the
greatest single card, then by the lot.
"""

from typing import Any

import numpy as np

from busso.cards.compiled.jit import njit

CARDS = 62
MIN_VALUE, MAX_VALUE = -10, 10
FACES = MAX_VALUE - MIN_VALUE + 1
PURE_SABACC, PRIME_SABACC, YEE_HAA = 3, 2, 1


def copies(value: int) -> int:
    """Return the number of cards of a value; 0 for an unknown value."""
    if not MIN_VALUE <= value <= MAX_VALUE:
        return 0
    return 2 if value == 0 else 3


VALUES = np.array([value for value in range(MIN_VALUE, MAX_VALUE + 1) for _ in range(copies(value))], np.int8)
NO_CARD = np.uint8(255)
RAISE, MATCH, FOLD, BUY, NO_BUY, DISCARD, SWAP_SPIKE, SWAP_LOWER, SWAP_HIGHER = range(9)
ACTIONS = 9
ACTION_TEXT = (
    "raise",
    "match",
    "fold",
    "buy",
    "do not buy",
    "discard",
    "swap with the spike card",
    "swap with the lower hand card",
    "swap with the higher hand card",
)


def action_text(action: int) -> str:
    """Return the name of an action: `0` -> `raise`."""
    return ACTION_TEXT[action]


def value_of(card: int) -> int | None:
    """Return the value of a card; None for NO_CARD."""
    return None if card == NO_CARD else int(VALUES[card])


def signed(value: int) -> str:
    """Format a value: `+3`, `-3`, `0`."""
    return f"{value:+d}" if value else "0"


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
