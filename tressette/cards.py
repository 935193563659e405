"""Cards of Tressette, and accusi: combinations in its ten dealt cards that a seat declares before its first card.

Each declaration is one bit of a word; `k` is the index of the rank among ace, two and three:

| bits         | declaration                                      | points |
|--------------|--------------------------------------------------|--------|
| 0-3          | napoletana: ace, two and three of suit 0 to 3    | 3      |
| 4 + 5k + s   | three cards of rank k, all but that of suit s    | 3      |
| 8 + 5k       | all four cards of rank k                         | 4      |
"""

import numpy as np

from busso.cards.compiled import tricks
from busso.cards.compiled.bits import bit, has, popcount
from busso.cards.compiled.jit import njit

CARDS = 40
SUITS = 4
RANKS = tricks.RANKS
RANK_TEXT = "4567FCRA23"
SUIT_TEXT = "DCSB"
SUIT_NAMES = ("denari", "coppe", "spade", "bastoni")
ACE, TWO, THREE = 7, 8, 9
SUIT_MASK = tricks.SUIT_MASK
DECK = np.uint64((1 << CARDS) - 1)
# Thirds of a point by strength: three for an ace, one each for 2, 3 and the face cards.
THIRDS = np.array([0, 0, 0, 0, 1, 1, 1, 3, 1, 1], np.uint8)
# Face values by strength; fante, cavallo and re are 8, 9 and 10.
FACE_VALUES = np.array([4, 5, 6, 7, 8, 9, 10, 1, 2, 3], np.uint8)
NAPOLETANA = 0
SAME_RANK = NAPOLETANA + SUITS
PER_RANK = SUITS + 1
HIGH_RANKS = 3  # ace, two, three: the strengths from ACE on
ACCUSI = SAME_RANK + HIGH_RANKS * PER_RANK
_HIGH = np.uint64((1 << HIGH_RANKS) - 1)
_FOURS = np.uint64(sum(1 << (SAME_RANK + PER_RANK * k + SUITS) for k in range(HIGH_RANKS)))


@njit
def suit_mask(card: int) -> np.uint64:
    """Return all cards of the suit of `card`."""
    return SUIT_MASK << np.uint64(RANKS * (card // RANKS))


@njit
def above(card: int) -> np.uint64:
    """Return the cards that beat `card` when its suit is led."""
    return suit_mask(card) & ~((np.uint64(1) << np.uint64(card + 1)) - np.uint64(1))


def card_text(card: int) -> str:
    """Return the text of a card: `0` -> `4D`."""
    return RANK_TEXT[card % RANKS] + SUIT_TEXT[card // RANKS]


def by_suit(cards: int) -> tuple[tuple[str, ...], ...]:
    """Return the texts of a set of cards by suit, the strongest first."""
    return tuple(
        tuple(card_text(card) for card in range(RANKS * suit + RANKS - 1, RANKS * suit - 1, -1) if cards >> card & 1)
        for suit in range(SUITS)
    )


def parse_card(text: object) -> int:
    """Parse a card: `4D` -> `0`. Raises ValueError for an unknown card."""
    if isinstance(text, str) and len(text) == 2 and text[0] in RANK_TEXT and text[1] in SUIT_TEXT:
        return SUIT_TEXT.index(text[1]) * RANKS + RANK_TEXT.index(text[0])
    raise ValueError(f"{text!r} is not a card (rank A 2 3 4 5 6 7 F C R, then suit D C S B)")


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
