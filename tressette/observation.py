"""What a seat of Tressette may know, as packed bits. Seats are relative to the observer: 0 is the observer.

| bits      | what                                                             |
|-----------|------------------------------------------------------------------|
| 0-39      | own hand                                                         |
| 40-159    | current trick: the card of relative seat 1, 2, 3 (40 bits each)  |
| 160-319   | cards played by relative seat 0, 1, 2, 3, the trick included     |
| 320-335   | known voids: 4 suits of relative seat 0, 1, 2, 3                 |
| 336-383   | newest signal (busso, striscio, volo) by relative seat and suit  |
| 384-415   | thirds taken by the own team, thermometer                        |
| 416-447   | thirds taken by the other team, thermometer                      |
| 448-457   | trick number, one-hot                                            |
| 458-461   | who leads the trick, one-hot by relative seat                    |
| 462-537   | with `game.accusi`: declared by relative seat 0, 1, 2, 3         |

Each seat's 19 bits of declarations are those of `tressette.accusi`. What a signal still owes (`owed` in the state) is
not here: a network has the newest signals and the cards played.
"""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cards.bits import bit, put, put_thermometer
from tressette.accusi import ACCUSI
from tressette.cards import CARDS, SUITS

HAND = 0
TRICK = HAND + CARDS
PLAYED = TRICK + 3 * CARDS
VOIDS = PLAYED + 4 * CARDS
SIGNALS = VOIDS + 4 * SUITS
OWN_THIRDS = SIGNALS + 4 * SUITS * 3
OTHER_THIRDS = OWN_THIRDS + 32
TRICK_NUMBER = OTHER_THIRDS + 32
LEADER = TRICK_NUMBER + 10
DECLARED = LEADER + 4
BITS = DECLARED
BITS_WITH_ACCUSI = DECLARED + 4 * ACCUSI


@njit
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    """OR the observation of `seat` into the zeroed `words`."""
    put(words, HAND, state.hands[seat])
    for relative in range(4):
        other = (seat + relative) & 3
        put(words, PLAYED + CARDS * relative, state.played[other])
        put(words, VOIDS + SUITS * relative, np.uint64((state.voids >> (SUITS * other)) & 15))
        if relative > 0 and state.trick[other] < CARDS:
            put(words, TRICK + CARDS * (relative - 1), bit(state.trick[other]))
        if state.with_signals:
            _put_signals(state, other, words, SIGNALS + 12 * relative)
        if state.with_accusi:
            put(words, DECLARED + ACCUSI * relative, np.uint64(state.accusi[other]))
    put_thermometer(words, OWN_THIRDS, state.thirds[seat & 1])
    put_thermometer(words, OTHER_THIRDS, state.thirds[(seat & 1) ^ 1])
    put(words, TRICK_NUMBER, bit(min(state.plays >> 2, 9)))
    put(words, LEADER, bit((state.leader - seat) & 3))


@njit
def _put_signals(state: Any, seat: int, words: NDArray[np.uint64], offset: int) -> None:
    for suit in range(SUITS):
        signal = state.signals[seat, suit]
        if signal > 0:
            put(words, offset + 3 * suit + signal - 1, np.uint64(1))
