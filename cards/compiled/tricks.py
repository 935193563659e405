"""Tricks in a deck of four suits of ten: card `c` has suit `c // 10` and strength `c % 10`; a hand is a bit mask."""

from typing import Any

import numpy as np

from busso.cards.compiled.jit import njit

RANKS = 10
SUIT_MASK = np.uint64((1 << RANKS) - 1)


@njit
def suit_of(hand: np.uint64, suit: int) -> np.uint64:
    """Return the cards of one suit in a hand, as bits by strength."""
    return (hand >> np.uint64(RANKS * suit)) & SUIT_MASK


@njit
def following(hand: np.uint64, suit: int) -> np.uint64:
    """Return the cards that a hand may play when it must follow the suit: those of the suit, or all if it has none."""
    same = hand & (SUIT_MASK << np.uint64(RANKS * suit))
    return same if same != np.uint64(0) else hand


@njit
def taker(trick: Any, leader: int) -> int:
    """Return the seat with the highest card of the suit led; `trick` holds each seat's card, or a non-card for none."""
    return _highest_in_suit(trick, trick[leader] // RANKS, leader, trick[leader])


@njit
def taker_with_trumps(trick: Any, leader: int, trumps: int) -> int:
    """Return the seat that takes a trick: the highest trump, or else the highest card of the suit led."""
    return _highest_in_suit(trick, trumps, taker(trick, leader), RANKS * trumps - 1)


@njit
def _highest_in_suit(trick: Any, suit: int, best: int, highest: int) -> int:
    """Return the seat with the highest card of a suit if it beats the card `highest`, else `best`."""
    suit_end = RANKS * (suit + 1)
    for seat in range(trick.size):
        card = trick[seat]
        if highest < card < suit_end:
            best, highest = seat, card
    return best
