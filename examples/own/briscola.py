"""Briscola for two in one file: a trick game with trumps.

40 cards, three for each seat. The next card is turned up and placed under the stock; its suit is trumps. A seat may
play any card in hand. The highest trump takes the trick; without trumps, the highest card of the suit led. While the
stock lasts, the taker and then the other seat draw a card; the taker leads. An ace counts 11, a three 10, re 4, cavallo
3, fante 2: 120 in all. Source: https://www.pagat.com/aceten/briscola.html, without the exchange of the turned card.
"""

import numpy as np

from busso.kit import (
    RANKS,
    Layout,
    bit,
    game,
    lowest,
    njit,
    number,
    put,
    put_thermometer,
    shuffle,
    taker_with_trumps,
)  # fmt: skip

CARDS, HAND, POINTS, WINNING, NONE = 40, 3, 120, 61, 255
NAMES = [rank + suit for suit in "DCSB" for rank in "24567FCR3A"]  # low to high; card = 10 * suit + strength
WORTH = np.array([0, 0, 0, 0, 0, 2, 3, 4, 10, 11], np.uint8)

STATE = np.dtype([
    ("hands", np.uint64, 2),  # bit c: the seat holds card c
    ("played", np.uint64, 2),  # bit c: the seat has played card c, including the current trick
    ("deck", np.uint8, CARDS),  # three cards for each seat, then the stock in draw order, the turned card last
    ("trick", np.uint8, 2),  # card on the table by seat, or NONE
    ("points", np.uint8, 2),  # taken by each seat
    ("drawn", np.uint8),  # cards of the deck no longer in the stock
    ("leader", np.uint8),  # of the current trick
    ("turn", np.uint8),  # the seat to move
])  # fmt: skip
SEES = Layout(
    hand=CARDS,
    table=CARDS,
    own_played=CARDS,
    other_played=CARDS,
    turned=CARDS,
    trumps=["denari", "coppe", "spade", "bastoni"],
    other_hand=CARDS,  # known once the stock is empty
    own_points=number(WINNING),  # capped at 61, which win
    other_points=number(WINNING),
    stock=number(17),  # half the number of its cards
)


@njit
def deal(state, seed):
    """Shuffle and deal; the order of all cards follows from the seed."""
    state.deck[:] = shuffle(CARDS, seed)
    state.played[:] = 0
    for seat in range(2):
        state.hands[seat] = 0
        for card in state.deck[HAND * seat : HAND * (seat + 1)]:
            state.hands[seat] |= bit(card)
    state.trick[:] = NONE
    state.points[:] = 0
    state.drawn = 2 * HAND
    state.leader = state.turn = 0


@njit
def legal(state):
    """Return all cards in hand, none after the last trick."""
    return state.hands[state.turn]


@njit
def trumps(state):
    """Return the suit of the turned card."""
    return state.deck[CARDS - 1] // RANKS


@njit
def apply(state, card):
    """Play a card; the second of a trick closes it."""
    seat = state.turn
    state.hands[seat] ^= bit(card)
    state.played[seat] |= bit(card)
    state.trick[seat] = card
    state.turn = 1 - seat
    if seat != state.leader:
        close_trick(state)


@njit
def close_trick(state):
    """Give the trick's points to its taker, who draws first and leads."""
    taker = taker_with_trumps(state.trick, state.leader, trumps(state))
    state.points[taker] += WORTH[state.trick[0] % RANKS] + WORTH[state.trick[1] % RANKS]
    state.trick[:] = NONE
    state.leader = state.turn = taker
    if state.drawn < CARDS:
        state.hands[taker] |= bit(state.deck[state.drawn])
        state.hands[1 - taker] |= bit(state.deck[state.drawn + 1])
        state.drawn += 2


@njit
def observe(state, seat, words):
    """Write the observation of a seat, in the blocks of SEES."""
    other, turned = 1 - seat, state.deck[CARDS - 1]
    put(words, SEES.hand, state.hands[seat])
    for card in state.trick:
        if card != NONE:
            put(words, SEES.table, bit(card))
    put(words, SEES.own_played, state.played[seat])
    put(words, SEES.other_played, state.played[other])
    put(words, SEES.turned, bit(turned))
    put(words, SEES.trumps, bit(turned // RANKS))
    if state.drawn == CARDS:
        put(words, SEES.other_hand, state.hands[other])
    put_thermometer(words, SEES.own_points, min(state.points[seat], WINNING))
    put_thermometer(words, SEES.other_points, min(state.points[other], WINNING))
    put_thermometer(words, SEES.stock, (CARDS - state.drawn) // 2)


@njit
def over(state):
    """Return whether all cards are played."""
    return state.hands[0] | state.hands[1] == 0 and state.trick[0] == NONE and state.trick[1] == NONE


@njit
def returns(state, out):
    """Write the points of each seat."""
    out[:] = state.points


@njit
def points(before, card, after, totals):
    """Add a trick's points over 60 to the reward of the seat that takes it, and subtract them from the other's."""
    for seat in range(2):
        won = np.float32(after.points[seat]) - np.float32(before.points[seat])
        totals[seat] += won / (POINTS // 2)
        totals[1 - seat] -= won / (POINTS // 2)


@njit
def greedy(state, random_bits):
    """Play the card that gains most in this trick; among equals the weakest, denari first.

    A card that takes the trick gains the points of both cards; any other loses its own and those on the table. A trump
    costs 4 points plus its own. A leader expects to lose the trick.
    """
    cards, best, most = legal(state), -1, -1000
    while cards != 0:
        card = lowest(cards)
        cards &= cards - np.uint64(1)
        value = RANKS * gain(state, card) - card % RANKS
        if value > most:
            best, most = card, value
    return best


@njit
def gain(state, card):
    """Return the points that a card is expected to gain in this trick."""
    worth, led = int(WORTH[card % RANKS]), state.trick[1 - state.turn]
    cost = 4 + worth if card // RANKS == trumps(state) else 0
    if led == NONE:
        return -max(cost, worth)
    trick = np.array([led, card], np.uint8)  # as if this seat were seat 1
    together = worth + WORTH[led % RANKS]
    return (together if taker_with_trumps(trick, 0, trumps(state)) == 1 else -together) - cost


GAME = game(
    STATE, deal, legal, apply, observe, over, returns,
    actions=NAMES, sees=SEES, total=POINTS, rewards={"points": points}, policies=[greedy],
)  # fmt: skip
RECIPE = {"network": {"hidden": [128, 128]}, "evaluation": {"opponents": ["random", "greedy"]}}
