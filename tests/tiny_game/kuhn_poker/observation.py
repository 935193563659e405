"""What a seat of Kuhn poker may know, as packed bits.

| bits | what                                  |
|------|---------------------------------------|
| 0-2  | own card, one-hot: jack, queen, king  |
| 3    | whether this seat has bet             |
| 4    | whether the other seat has bet        |
| 5    | whether this seat acts first          |
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, put
from busso.cards.compiled.jit import njit

OWN_CARD = 0
OWN_BET = 3
OTHER_BET = 4
FIRST = 5
BITS = 6


@njit
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    """OR the observation into the zeroed `words`."""
    put(words, OWN_CARD, bit(state.cards[seat]))
    put(words, OWN_BET, np.uint64(state.chips[seat] > 1))
    put(words, OTHER_BET, np.uint64(state.chips[1 - seat] > 1))
    put(words, FIRST, np.uint64(seat == 0))
