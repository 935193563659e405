"""Observation of the player in Sette e mezzo as packed bits.

| bits  | meaning                                                                         |
|-------|---------------------------------------------------------------------------------|
| 0-16  | own score in halves, one-hot; 16 for anything over seven and a half             |
| 17-24 | kind of the opponent's first card, one-hot: A 2 3 4 5 6 7 face                  |
| 25-49 | own cards, thermometers: 4 bits for aces, 3 twos, 2 threes, 1 each 4 to 7, 12 faces |
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, put, put_thermometer
from busso.cards.compiled.jit import njit
from busso.sette_mezzo.cards import HANDS, KINDS, MAX_SCORE

SCORE = 0
OPPONENT = SCORE + MAX_SCORE + 2
OWN_CARDS = OPPONENT + KINDS
# The most cards of a kind in a hand: four per rank, within seven and a half.
WIDTHS = np.minimum(HANDS.counts.max(axis=0), np.array([4] * 7 + [12]))
OFFSETS = OWN_CARDS + np.concatenate([[0], np.cumsum(WIDTHS)[:-1]])
BITS = int(OWN_CARDS + WIDTHS.sum())
_COUNTS = HANDS.counts.astype(np.uint8)


@njit
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    """OR the observation into the zeroed `words`."""
    put(words, SCORE, bit(min(state.score, MAX_SCORE + 1)))
    put(words, OPPONENT, bit(min(state.opponent_rank, KINDS - 1)))
    for kind in range(KINDS):
        put_thermometer(words, OFFSETS[kind], _COUNTS[state.hand, kind])
