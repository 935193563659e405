"""Players of Briscola without a network: `(state, random_bits) -> card`."""

from typing import Any

import numpy as np

from briscola.rules import NO_CARD, WORTH, legal, trumps
from busso.cards.compiled.bits import lowest
from busso.cards.compiled.jit import njit
from busso.cards.compiled.tricks import RANKS, taker_with_trumps

TRUMP = 4  # points that greedy gives for keeping a trump


@njit
def greedy(state: Any, random_bits: np.uint64) -> int:
    """Plays the card that gains most in this trick; among equals the weakest, denari first.

    A card that takes gains the points of both cards; another loses its own and those on the table. A trump costs 4
    points and its own. A leader expects to lose the trick.
    """
    cards, best, most = legal(state), -1, -1000
    while cards != np.uint64(0):
        card = lowest(cards)
        cards &= cards - np.uint64(1)
        gain = RANKS * _gain(state, card) - card % RANKS
        if gain > most:
            best, most = card, gain
    return best


@njit
def _gain(state: Any, card: int) -> int:
    seat, worth, trump = state.turn, int(WORTH[card % RANKS]), card // RANKS == trumps(state)
    cost = TRUMP + worth if trump else 0
    led = state.trick[1 - seat]
    if led == NO_CARD:
        return -max(cost, worth)
    trick = np.array([led, card], np.uint8)  # by seat, if this were seat 1
    points = worth + WORTH[led % RANKS]
    return (points if taker_with_trumps(trick, 0, trumps(state)) == 1 else -points) - cost


POLICIES = {"greedy": greedy}
