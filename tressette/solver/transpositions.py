"""Transposition table of the double-dummy solver: bounds on the thirds that team 0 still gets, by position.

A position at the start of a trick is the leader and, for each suit, the owners and values of the remaining cards in
order of strength. Which cards are gone does not matter, nor do the thirds taken so far: the search is for thirds, and
points are thirds rounded down. The key is the position itself, in two words, so that a table serves any number of
deals.

| bits of word 0 | meaning                    | bits of word 1 | meaning                                  |
|----------------|----------------------------|----------------|------------------------------------------|
| 0-26, 27-53    | denari, coppe              | 0-26, 27-53    | spade, bastoni                           |
| 54-55          | leader                     | 54-59          | most thirds that team 0 can get          |
| 56-61          | fewest thirds of team 0    | 60-63          | best card: how many of its suit are below|
| 62-63          | best card: suit            |                |                                          |

A suit is 20 bits of owners, two per remaining card, and 7 bits for the number of cards of each value.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import has, highest, nth_bit, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import mix
from busso.tressette.cards import ACE, RANKS, SUIT_MASK, SUITS
from busso.tressette.rules import SEATS

BUCKET = 4  # entries in a cache line
_SUIT_BITS = np.uint64(27)
_OWNER_BITS = 20
_KEY = (np.uint64((1 << 56) - 1), np.uint64((1 << 54) - 1))
_SIX = np.uint64(63)
_NO_CARD = np.uint64(15)


@njit
def _shape(cards: int) -> int:
    """Encode the number of cards of each value in a set of cards of one suit, in order, as a number from 1 to 90."""
    zeros, faces = popcount(np.uint64(cards & 15)), popcount(np.uint64((cards >> 4) & 7))
    high = popcount(np.uint64(cards >> 8))
    if cards >> ACE & 1:
        return 1 + 12 * zeros + 3 * faces + high
    # Without the ace between them, face cards, 2 and 3 are one run.
    return 61 + 6 * zeros + faces + high


@njit
def number_suits(hands: NDArray[np.uint64], codes: NDArray[np.uint32]) -> None:
    """Write `codes[suit, cards]` for all subsets of the cards in the hands."""
    held = hands[0] | hands[1] | hands[2] | hands[3]
    for suit in range(SUITS):
        full = np.int64((held >> np.uint64(RANKS * suit)) & SUIT_MASK)
        codes[suit, 0] = _shape(0) << _OWNER_BITS
        cards = (0 - full) & full
        while cards != 0:
            top = np.int64(highest(np.uint64(cards)))
            owner = 0
            for seat in range(1, SEATS):
                if has(hands[seat], RANKS * suit + top):
                    owner = seat
            below = cards ^ (1 << top)
            owners = np.int64(codes[suit, below]) & ((1 << _OWNER_BITS) - 1)
            place = 2 * popcount(np.uint64(below))
            codes[suit, cards] = (_shape(cards) << _OWNER_BITS) | owners | (owner << place)
            cards = (cards - full) & full


@njit
def find(frame: Any, codes: NDArray[np.uint32], entries: NDArray[np.uint64]) -> int:
    """Look the position up: set the frame's key, slot and bounds, and return the best card known, or -1."""
    held = frame.hands[0] | frame.hands[1] | frame.hands[2] | frame.hands[3]
    suits = (
        np.uint64(codes[0, held & SUIT_MASK]),
        np.uint64(codes[1, (held >> np.uint64(RANKS)) & SUIT_MASK]),
        np.uint64(codes[2, (held >> np.uint64(2 * RANKS)) & SUIT_MASK]),
        np.uint64(codes[3, (held >> np.uint64(3 * RANKS)) & SUIT_MASK]),
    )
    first = suits[0] | (suits[1] << _SUIT_BITS) | (np.uint64(frame.seat) << np.uint64(54))
    second = suits[2] | (suits[3] << _SUIT_BITS)
    frame.key[0], frame.key[1] = first, second
    mixed = mix(first ^ mix(second))
    bucket = np.int64(mixed & np.uint64(entries.shape[0] // BUCKET - 1)) * BUCKET
    frame.low, frame.high = 0, frame.rest
    for slot in range(bucket, bucket + BUCKET):
        if entries[slot, 0] & _KEY[0] == first and entries[slot, 1] & _KEY[1] == second:
            frame.slot = slot
            frame.low = np.int64((entries[slot, 0] >> np.uint64(56)) & _SIX)
            frame.high = np.int64((entries[slot, 1] >> np.uint64(54)) & _SIX)
            suit = np.int64(entries[slot, 0] >> np.uint64(62))
            place = entries[slot, 1] >> np.uint64(60)
            if place == _NO_CARD:
                return -1
            return RANKS * suit + nth_bit((held >> np.uint64(RANKS * suit)) & SUIT_MASK, np.int64(place))
    # Replace any of them, chosen by unused bits of the hash.
    frame.slot = bucket + np.int64(mixed >> np.uint64(62))
    return -1


@njit
def keep(frame: Any, target: int, entries: NDArray[np.uint64]) -> None:
    """Store the search result of the frame's position: `best` is a lower or upper bound on team 0's thirds."""
    more = frame.best - frame.taken
    if frame.best >= target:
        frame.low = max(frame.low, more)
    else:
        frame.high = min(frame.high, more)
    suit, place = np.uint64(0), _NO_CARD
    if frame.best_card >= 0:
        held = frame.hands[0] | frame.hands[1] | frame.hands[2] | frame.hands[3]
        suit = np.uint64(frame.best_card // RANKS)
        lower = (np.uint64(1) << np.uint64(frame.best_card)) - np.uint64(1)
        place = np.uint64(popcount((held & lower) >> (np.uint64(RANKS) * suit)))
    entries[frame.slot, 0] = frame.key[0] | (np.uint64(frame.low) << np.uint64(56)) | (suit << np.uint64(62))
    entries[frame.slot, 1] = frame.key[1] | (np.uint64(frame.high) << np.uint64(54)) | (place << np.uint64(60))
