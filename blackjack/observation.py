"""Observation of the player in Blackjack as packed bits.

| bits  | meaning                                                                               |
|-------|---------------------------------------------------------------------------------------|
| 0-22  | own sum, one-hot; 22 for anything over 21                                             |
| 23    | whether the sum is soft                                                               |
| 24-33 | the dealer's open card, one-hot: A 2 3 4 5 6 7 8 9 10                                 |
| 34-92 | own cards, thermometers: 21 bits for aces, 10 twos, 7 3s, 5 4s, 4 5s, 3 6s, 3 7s, 2 each 8 to 10 |
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.blackjack.cards import HANDS, KINDS, MAX_SUM, TEN
from busso.cards.compiled.bits import bit, put, put_thermometer
from busso.cards.compiled.jit import njit

SUM = 0
SOFT = SUM + MAX_SUM + 2
DEALER = SOFT + 1
OWN_CARDS = DEALER + KINDS
WIDTHS = HANDS.counts.max(axis=0)
OFFSETS = OWN_CARDS + np.concatenate([[0], np.cumsum(WIDTHS)[:-1]])
BITS = int(OWN_CARDS + WIDTHS.sum())
_COUNTS = HANDS.counts.astype(np.uint8)


@njit
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    """OR the observation into the zeroed `words`."""
    put(words, SUM, bit(min(state.sum, MAX_SUM + 1)))
    put(words, SOFT, np.uint64(state.soft))
    put(words, DEALER, bit(min(state.open_rank, TEN)))
    for kind in range(KINDS):
        put_thermometer(words, OFFSETS[kind], _COUNTS[state.hand, kind])
