"""Accusi: combinations in its ten dealt cards that a seat declares before its first card, and their points.

Each declaration is one bit of a word; `k` is the index of the rank among ace, two and three:

| bits         | declaration                                      | points |
|--------------|--------------------------------------------------|--------|
| 0-3          | napoletana: ace, two and three of suit 0 to 3    | 3      |
| 4 + 5k + s   | three cards of rank k, all but that of suit s    | 3      |
| 8 + 5k       | all four cards of rank k                         | 4      |
"""

import numpy as np

from busso.cards.compiled.bits import bit, has, popcount
from busso.cards.compiled.jit import njit
from busso.tressette.cards import ACE, RANKS, SUITS

NAPOLETANA = 0
SAME_RANK = NAPOLETANA + SUITS
PER_RANK = SUITS + 1
HIGH_RANKS = 3  # ace, two, three: the strengths from ACE on
ACCUSI = SAME_RANK + HIGH_RANKS * PER_RANK
_HIGH = np.uint64((1 << HIGH_RANKS) - 1)
_FOURS = np.uint64(sum(1 << (SAME_RANK + PER_RANK * k + SUITS) for k in range(HIGH_RANKS)))


@njit
def accusi_of(dealt: np.uint64) -> np.uint32:
    """Return all declarations of a dealt hand, as bits."""
    declared = np.uint64(0)
    for suit in range(SUITS):
        if (dealt >> np.uint64(RANKS * suit + ACE)) & _HIGH == _HIGH:
            declared |= bit(NAPOLETANA + suit)
    for k in range(HIGH_RANKS):
        held, missing = 0, SUITS
        for suit in range(SUITS):
            if has(dealt, RANKS * suit + ACE + k):
                held += 1
            else:
                missing = suit
        # With all four cards, `missing` is the bit after the suits.
        if held >= SUITS - 1:
            declared |= bit(SAME_RANK + PER_RANK * k + missing)
    return np.uint32(declared)


@njit
def accusi_points(declared: np.uint32) -> int:
    """Return the points that these declarations of one seat add to its team's score in a match."""
    bits = np.uint64(declared)
    return 3 * popcount(bits) + popcount(bits & _FOURS)
