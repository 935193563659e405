"""Cards of Sette e mezzo: ranks `A 2 3 4 5 6 7 F C R`, four of each; scores are counted in halves.

Suits do not matter. Each rank below 7 is its own kind; the three face cards (fante, cavallo, re) are worth the same and
share the kind FACE.
"""

import numpy as np

from busso.cards.records import parse_rank
from busso.cards.tabular.multisets import multisets

RANK_TEXT = "A234567FCR"
RANKS = 10
COPIES = 4
KINDS = 8
FACE = 7
MAX_SCORE = 15  # halves: seven and a half
VALUES = np.array([2, 4, 6, 8, 10, 12, 14, 1], np.int64)  # halves, by kind
DECK = np.array([4, 4, 4, 4, 4, 4, 4, 12], np.int64)  # cards, by kind
# All hands of at most seven and a half, as multisets of kinds; the ace is kind 0.
HANDS = multisets(VALUES.tolist(), MAX_SCORE)
HAND_AFTER = HANDS.child


def parse_card(text: object) -> int:
    """Parse a card: `A` -> 0. Raises ValueError for an unknown card."""
    return parse_rank(text, RANK_TEXT)


def kind_of(rank: int) -> int:
    """Return the kind of a rank."""
    return min(rank, FACE)


def points_text(halves: int) -> str:
    """Return the text of a score: `11` -> `5.5`."""
    return f"{halves / 2:g}"
