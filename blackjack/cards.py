"""Cards of Blackjack: ranks `A 2 3 4 5 6 7 8 9 10 J Q K`, four of each in a deck; the suits do not matter.

The kind of a card is its value minus one: aces are kind 0, tens and face cards kind 9. A sum counts one ace as 11 if
that does not exceed 21, and is then soft.
"""

import numpy as np

from busso.cards.records import parse_rank
from busso.cards.tabular.multisets import multisets

RANK_TEXT = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
KIND_TEXT = RANK_TEXT[:10]
RANKS = 13
COPIES = 4  # of each rank in a deck
KINDS = 10
ACE, TEN = 0, 9
MAX_SUM = 21
DECK = np.array([4] * 9 + [16], np.int64)  # cards in a deck, by kind
# All hands of at most 21, as multisets of kinds with aces counted as 1.
HANDS = multisets(range(1, KINDS + 1), MAX_SUM)
HAND_AFTER = HANDS.child
# The sum of each hand, and whether it is soft.
HAND_SOFT = (HANDS.counts[:, ACE] > 0) & (HANDS.total + 10 <= MAX_SUM)
HAND_SUM = HANDS.total + 10 * HAND_SOFT


def parse_card(text: object) -> int:
    """Parse a card: `K` -> 12. Raises ValueError for an unknown card."""
    return parse_rank(text, RANK_TEXT)


def kind_of(rank: int) -> int:
    """Return the kind of a rank."""
    return min(rank, TEN)
