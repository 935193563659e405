"""The rules of Briscola for two.

40 cards, three for each seat. The next is turned and lies under the stock; its suit is trumps. A seat may play any card
of its hand. The highest trump takes the trick; without trumps, the highest card of the suit led. While there is a
stock, its seat draws a card, then the other. It leads next. An ace counts 11, a three 10, re 4, cavallo 3, fante 2: 120
in all.

Source: https://www.pagat.com/aceten/briscola.html, the game for two, without the exchange of the turned card.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from briscola.observation import observe
from busso.cards.compiled.batch import Rules
from busso.cards.compiled.bits import bit
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.cards.compiled.tricks import RANKS, taker_with_trumps

CARDS = 40
HAND = 3
POINTS = 120
NO_CARD = np.uint8(255)
# Low to high; a card's number is 10 * suit + its place here.
CARD_TEXT = tuple(rank + suit for suit in "DCSB" for rank in "24567FCR3A")
WORTH = np.array([0, 0, 0, 0, 0, 2, 3, 4, 10, 11], np.uint8)

STATE = np.dtype(
    [
        ("hands", np.uint64, 2),  # bit c: the seat holds card c
        ("played", np.uint64, 2),  # bit c: the seat has played card c, the current trick included
        ("deck", np.uint8, CARDS),  # three cards for each seat, then the stock in draw order, the turned card last
        ("trick", np.uint8, 2),  # card on the table by seat, or NO_CARD
        ("points", np.uint8, 2),  # taken by each seat
        ("drawn", np.uint8),  # cards of the deck that are in hands or played
        ("leader", np.uint8),  # of the current trick
        ("turn", np.uint8),  # the seat to move
    ],
    align=True,
)


@dataclass(frozen=True)
class Options:
    """There are none."""


def blank(options: Options) -> np.void:
    """A state that holds nothing."""
    return np.zeros(1, STATE)[0]


@njit
def begin(state: Any) -> None:
    """Start the game of the cards in `state.deck`; seat 0 leads."""
    state.played[:] = np.uint64(0)
    for seat in range(2):
        state.hands[seat] = np.uint64(0)
        for card in state.deck[HAND * seat : HAND * (seat + 1)]:
            state.hands[seat] |= bit(card)
    state.trick[:] = NO_CARD
    state.points[:] = 0
    state.drawn = 2 * HAND
    state.leader = state.turn = 0


@njit
def deal(state: Any, seed: np.uint64) -> None:
    """Shuffle and begin; the order of all cards follows from `seed`."""
    random = mix(seed)
    for place in range(CARDS):
        random += GAMMA
        other = below(mix(random), place + 1)
        state.deck[place] = state.deck[other]
        state.deck[other] = place
    begin(state)


@njit
def legal(state: Any) -> np.uint64:
    """Any card in hand; after the last trick there is none."""
    return state.hands[state.turn]


@njit
def trumps(state: Any) -> int:
    """The suit of the turned card."""
    return state.deck[CARDS - 1] // RANKS


@njit
def apply(state: Any, card: int) -> None:
    """Play a card; the second of a trick closes it."""
    seat = state.turn
    state.hands[seat] ^= bit(card)
    state.played[seat] |= bit(card)
    state.trick[seat] = card
    state.turn = 1 - seat
    if seat != state.leader:
        _close_trick(state)


@njit
def _close_trick(state: Any) -> None:
    taker = taker_with_trumps(state.trick, state.leader, trumps(state))
    state.points[taker] += WORTH[state.trick[0] % RANKS] + WORTH[state.trick[1] % RANKS]
    state.trick[:] = NO_CARD
    state.leader = state.turn = taker
    if state.drawn < CARDS:
        state.hands[taker] |= bit(state.deck[state.drawn])
        state.hands[1 - taker] |= bit(state.deck[state.drawn + 1])
        state.drawn += 2


@njit
def over(state: Any) -> bool:
    """Whether all cards are played."""
    return state.hands[0] | state.hands[1] == np.uint64(0) and state.trick[0] == NO_CARD and state.trick[1] == NO_CARD


@njit
def returns(state: Any, out: NDArray[np.float32]) -> None:
    """The points of each seat."""
    out[:] = state.points


RULES = Rules(deal, legal, apply, observe, over, returns)
