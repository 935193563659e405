"""Cards of Blackjack: ranks `A 2 3 4 5 6 7 8 9 10 J Q K`, four of each in a deck; the suits do not matter.

The kind of a card is its value less one: aces are kind 0, tens and faces kind 9. A sum is counted with one ace as 11
while that does not go over 21, and is then called soft.
"""

import numpy as np

from busso.cards.records import parse_rank
from busso.cards.tabular.multisets import multisets

RANK_TEXT = ("A", "2", "3", "4", "5", "6", "7", "8", "9", "10", "J", "Q", "K")
KIND_TEXT = RANK_TEXT[:10]
RANKS = 13
COPIES = 4  # of a rank in a deck
KINDS = 10
ACE, TEN = 0, 9
MAX_SUM = 21
DECK = np.array([4] * 9 + [16], np.int64)  # cards of a deck, by kind
# Every hand that has not gone over, a multiset of kinds with aces as 1.
HANDS = multisets(range(1, KINDS + 1), MAX_SUM)
HAND_AFTER = HANDS.child.astype(np.int16)  # 62 kB: a kernel of a GPU has 64 kB for constants
# The sums of these hands, and whether they are soft.
HAND_SOFT = (HANDS.counts[:, ACE] > 0) & (HANDS.total + 10 <= MAX_SUM)
HAND_SUM = HANDS.total + 10 * HAND_SOFT


def parse_card(text: object) -> int:
    """`K` -> 12. Raises ValueError naming a text that is no card."""
    return parse_rank(text, RANK_TEXT)


def kind_of(rank: int) -> int:
    """The kind of a rank."""
    return min(rank, TEN)
