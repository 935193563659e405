"""Tressette cards and their text: rank `4 5 6 7 F C R A 2 3` (low to high), then suit `D C S B`.

Card `c` has suit `c // 10` (denari, coppe, spade, bastoni) and strength `c % 10`.
"""

import numpy as np

from busso.cards.compiled import tricks
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


def parse_card(text: object) -> int:
    """Parse a card: `4D` -> `0`. Raises ValueError for an unknown card."""
    if isinstance(text, str) and len(text) == 2 and text[0] in RANK_TEXT and text[1] in SUIT_TEXT:
        return SUIT_TEXT.index(text[1]) * RANKS + RANK_TEXT.index(text[0])
    raise ValueError(f"{text!r} is not a card (rank A 2 3 4 5 6 7 F C R, then suit D C S B)")
