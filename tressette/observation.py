"""Observation of a seat in Tressette as packed bits. Seats are relative to the observer, who is seat 0.

| bits      | meaning                                                          |
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
| 462-621   | cards that relative seat 0, 1, 2, 3 led a trick with             |
| 622-781   | cards that relative seat 0, 1, 2, 3 could not follow suit with   |
| 782-821   | own cards that beat what lies on the table                       |
| 822-825   | relative seat whose card takes the trick as it lies, one-hot     |
| 826-837   | thirds on the table, thermometer                                 |
| 838-877   | own cards that no card of others beats, the trick's included     |
| 878-917   | the highest card of others in each suit, the trick's included    |
| 918-993   | with `game.accusi`: declared by relative seat 0, 1, 2, 3         |

cards.py defines each seat's 19 declaration bits. What a signal still promises (`promised` in the state) is not
included: a network sees the latest signals and the cards played. Bits 782 to 917 follow from the bits before them; a
network learns faster with them (docs/explanation/experiments/suits.md). If seats declare, a network trained without
accusi sees only the first 918 bits (`network.inputs`).
"""

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, highest, put, put_thermometer
from busso.cards.compiled.jit import njit
from busso.cards.compiled.symmetry import Symmetry, layout
from busso.tressette.cards import ACCUSI, CARDS, DECK, NAPOLETANA, PER_RANK, RANKS, SAME_RANK, SUIT_MASK, SUITS, THIRDS

HAND = 0
TRICK = HAND + CARDS
PLAYED = TRICK + 3 * CARDS
VOIDS = PLAYED + 4 * CARDS
SIGNALS = VOIDS + 4 * SUITS
OWN_THIRDS = SIGNALS + 4 * SUITS * 3
OTHER_THIRDS = OWN_THIRDS + 32
TRICK_NUMBER = OTHER_THIRDS + 32
LEADER = TRICK_NUMBER + 10
LED = LEADER + 4
DISCARDED = LED + 4 * CARDS
BEATING = DISCARDED + 4 * CARDS
TAKING = BEATING + CARDS
ON_TABLE = TAKING + 4
UNBEATEN = ON_TABLE + 12
HIGHEST = UNBEATEN + CARDS
DECLARED = HIGHEST + CARDS
BITS = DECLARED
BITS_WITH_ACCUSI = DECLARED + 4 * ACCUSI


@njit
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    """OR the observation of `seat` into the zeroed `words`."""
    put(words, HAND, state.hands[seat])
    gone = np.uint64(0)
    for relative in range(4):
        other = (seat + relative) & 3
        played = state.played[other]
        gone |= played
        put(words, PLAYED + CARDS * relative, played)
        put(words, LED + CARDS * relative, played & state.led)
        put(words, DISCARDED + CARDS * relative, played & state.discarded)
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
    _put_standing(state, seat, DECK & ~gone, words)


@njit
def _put_signals(state: Any, seat: int, words: NDArray[np.uint64], offset: int) -> None:
    for suit in range(SUITS):
        signal = state.signals[seat, suit]
        if signal > 0:
            put(words, offset + 3 * suit + signal - 1, np.uint64(1))


@njit
def _put_standing(state: Any, seat: int, left: np.uint64, words: NDArray[np.uint64]) -> None:
    """Write the state of the trick and of the suits, given the cards `left` in all hands."""
    hand = state.hands[seat]
    others = left & ~hand
    if state.trick[state.leader] < CARDS:
        taker, thirds = np.int64(state.leader), 0
        card = np.int64(state.trick[taker])
        suit_end = RANKS * (card // RANKS + 1)
        for other in range(4):
            lying = np.int64(state.trick[other])
            if lying < CARDS:
                others |= bit(lying)
                thirds += THIRDS[lying % RANKS]
            if card < lying < suit_end:
                taker, card = np.int64(other), lying
        put(words, BEATING, hand & (bit(suit_end) - (bit(card) << np.uint64(1))))
        put(words, TAKING, bit((taker - seat) & 3))
        put_thermometer(words, ON_TABLE, thirds)
    for suit in range(SUITS):
        shift = np.uint64(RANKS * suit)
        top = highest((others >> shift) & SUIT_MASK)
        own = (hand >> shift) & SUIT_MASK & ~(bit(top + 1) - np.uint64(1))
        put(words, UNBEATEN + RANKS * suit, own)
        if top >= 0:
            put(words, HIGHEST + RANKS * suit + top, np.uint64(1))


@cache
def symmetry(accusi: bool) -> Symmetry:
    """Return the symmetry of the four suits, none of which is trumps."""
    cards = np.arange(CARDS).reshape(SUITS, RANKS)
    suits = np.arange(SUITS).reshape(SUITS, 1)
    signals = np.arange(3 * SUITS).reshape(SUITS, 3)
    # The last bit of each rank means all four cards.
    ranks = range(SAME_RANK, ACCUSI, PER_RANK)
    declared = np.array([[first + suit for first in (NAPOLETANA, *ranks)] for suit in range(SUITS)])
    groups = [(start, RANKS, cards) for start in range(HAND, VOIDS, CARDS)]
    groups += [(VOIDS + SUITS * seat, 1, suits) for seat in range(4)]
    groups += [(SIGNALS + 12 * seat, 3, signals) for seat in range(4)]
    groups += [(start, RANKS, cards) for start in (*range(LED, TAKING, CARDS), UNBEATEN, HIGHEST)]
    if accusi:
        groups += [(DECLARED + ACCUSI * seat, declared.shape[1], declared) for seat in range(4)]
    return layout(groups, SUITS, BITS_WITH_ACCUSI if accusi else BITS)
