"""What a seat of Briscola may know, as packed bits.

| bits    | what                                                             |
|---------|------------------------------------------------------------------|
| 0-39    | own hand                                                         |
| 40-79   | the card on the table                                            |
| 80-119  | cards played by this seat, the trick included                    |
| 120-159 | cards played by the other seat, the trick included               |
| 160-199 | the turned card                                                  |
| 200-203 | the suit of trumps, one-hot                                      |
| 204-243 | the hand of the other seat, known as soon as the stock is empty  |
| 244-304 | own points, thermometer; 61, which win, stand for all above too  |
| 305-365 | points of the other seat, likewise                               |
| 366-382 | half the cards of the stock, thermometer                         |
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, put, put_thermometer
from busso.cards.compiled.jit import njit
from busso.cards.compiled.tricks import RANKS

CARDS = 40
WINNING = 61
TABLE = CARDS
PLAYED = TABLE + CARDS
TURNED = PLAYED + 2 * CARDS
TRUMPS = TURNED + CARDS
OTHER_HAND = TRUMPS + 4
OWN_POINTS = OTHER_HAND + CARDS
OTHER_POINTS = OWN_POINTS + WINNING
STOCK = OTHER_POINTS + WINNING
BITS = STOCK + 17


@njit
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    """OR the observation into the zeroed `words`."""
    other, turned = 1 - seat, state.deck[CARDS - 1]
    put(words, 0, state.hands[seat])
    for card in state.trick:
        if card < CARDS:
            put(words, TABLE, bit(card))
    put(words, PLAYED, state.played[seat])
    put(words, PLAYED + CARDS, state.played[other])
    put(words, TURNED, bit(turned))
    put(words, TRUMPS, bit(turned // RANKS))
    if state.drawn == CARDS:
        put(words, OTHER_HAND, state.hands[other])
    put_thermometer(words, OWN_POINTS, min(state.points[seat], WINNING))
    put_thermometer(words, OTHER_POINTS, min(state.points[other], WINNING))
    put_thermometer(words, STOCK, (CARDS - state.drawn) // 2)
