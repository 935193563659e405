"""War of tricks: two seats, 20 cards, follow suit; the seat with more of the ten tricks wins.

Suits D C S B, ranks 1 to 5; card = 5 * suit + rank - 1. Seat 0 leads the first trick, the taker of each trick the next.
"""

import numpy as np

from busso.kit import Layout, bit, game, lowest, njit, number, put, put_thermometer, shuffle

CARDS, RANKS, TRICKS, NONE = 20, 5, 10, 255
NAMES = [rank + suit for suit in "DCSB" for rank in "12345"]

STATE = np.dtype([
    ("turn", np.uint8),  # the seat to move
    ("led", np.uint8),  # the card on the table, or NONE
    ("taken", np.uint8, 2),  # tricks of each seat
    ("hands", np.uint64, 2),  # bit c: the seat holds card c
    ("played", np.uint64, 2),  # bit c: the seat has played it
])  # fmt: skip
SEES = Layout(
    hand=CARDS,
    table=CARDS,
    own_played=CARDS,
    other_played=CARDS,
    own_tricks=number(TRICKS),
    other_tricks=number(TRICKS),
)


@njit
def suit_of(card):
    """Return the bits of all cards of a card's suit."""
    return np.uint64(31) << np.uint64(card // RANKS * RANKS)


@njit
def deal(state, seed):
    """Deal ten cards to each seat; all randomness follows from the seed."""
    state.turn, state.led = 0, NONE
    state.taken[:] = 0
    state.hands[:] = 0
    state.played[:] = 0
    for place, card in enumerate(shuffle(CARDS, seed)):
        state.hands[place % 2] |= bit(card)


@njit
def legal(state):
    """Return the cards of the suit led, or the whole hand if there are none or the seat leads."""
    hand = state.hands[state.turn]
    if state.led == NONE:
        return hand
    following = hand & suit_of(state.led)
    return following if following else hand


@njit
def apply(state, card):
    """Play a card; the second one closes the trick."""
    seat = state.turn
    state.hands[seat] ^= bit(card)
    state.played[seat] |= bit(card)
    state.turn = 1 - seat
    if state.led == NONE:
        state.led = card
        return
    if card // RANKS == state.led // RANKS and card > state.led:
        state.turn = seat
    state.taken[state.turn] += 1
    state.led = NONE


@njit
def observe(state, seat, words):
    """Write the observation of a seat, in the blocks of SEES."""
    put(words, SEES.hand, state.hands[seat])
    if state.led != NONE:
        put(words, SEES.table, bit(state.led))
    put(words, SEES.own_played, state.played[seat])
    put(words, SEES.other_played, state.played[1 - seat])
    put_thermometer(words, SEES.own_tricks, state.taken[seat])
    put_thermometer(words, SEES.other_tricks, state.taken[1 - seat])


@njit
def over(state):
    """Return whether all cards are played."""
    return state.taken[0] + state.taken[1] == TRICKS


@njit
def returns(state, out):
    """Write the tricks of each seat."""
    out[:] = state.taken


@njit
def sluff(state, random_bits):
    """Play the lowest legal card."""
    return lowest(legal(state))


GAME = game(
    STATE, deal, legal, apply, observe, over, returns,
    actions=NAMES, sees=SEES, unit="tricks", total=TRICKS, policies=[sluff],
)  # fmt: skip
