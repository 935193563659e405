"""Kuhn poker: two seats, three cards, one bet; its exact value for seat 0 is -1/18 chip per game.

Three cards, jack, queen and king. Each seat antes a chip and gets one card; the third stays face down. Seat 0 begins: a
seat may pass or bet, and a seat that faces a bet passes (folds) or bets as much (calls). After two passes or a call,
the higher card wins both stakes; after a fold, the other seat wins them.

H. W. Kuhn (1950), "A simplified two-person poker", Contributions to the Theory of Games 1.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from busso.base.bounds import Bounds
from busso.cards.presentation import Judging, Presentation, Row
from busso.kit import GAMMA, Layout, below, bit, game, mix, njit, put, uniform

CARD_TEXT, ACTION_TEXT = "JQK", ("pass", "bet")
JACK, QUEEN = 0, 1
PASS, BET = 0, 1
STATE = np.dtype([
    ("cards", np.uint8, 2),  # by seat: 0 jack, 1 queen, 2 king
    ("chips", np.uint8, 2),  # staked by each seat
    ("moves", np.uint8),  # actions so far
    ("turn", np.uint8),  # seat to move
    ("bet", np.uint8),  # option
])  # fmt: skip
SEES = Layout(own_card=list(CARD_TEXT), own_bet=1, other_bet=1, first=1)


@dataclass(frozen=True)
class Options:
    """Rule options: a bet costs `bet` chips, 1 to 10."""

    bet: Annotated[int, Bounds(1, 10)] = 1


@njit
def deal(state, seed):
    """Deal two of the three cards, determined by the seed."""
    first, second = below(mix(seed), 3), below(mix(seed + GAMMA), 2)
    state.cards[0], state.cards[1] = first, second + 1 if second >= first else second
    state.chips[:] = 1
    state.moves = state.turn = 0


@njit
def legal(state):
    """Return the mask of pass and bet, until the game is over."""
    return np.uint64(0) if over(state) else bit(PASS) | bit(BET)


@njit
def apply(state, action):
    """Pass or bet; the other seat is next."""
    if action == BET:
        state.chips[state.turn] += state.bet
    state.moves += 1
    state.turn ^= 1


@njit
def observe(state, seat, words):
    """Write the observer's card, the bets, and the first seat."""
    put(words, SEES.own_card, bit(state.cards[seat]))
    put(words, SEES.own_bet, np.uint64(state.chips[seat] > 1))
    put(words, SEES.other_bet, np.uint64(state.chips[1 - seat] > 1))
    put(words, SEES.first, np.uint64(seat == 0))


@njit
def over(state):
    """Return whether both have acted, except after pass and bet, which the first seat must answer."""
    return state.moves == 3 or (state.moves == 2 and state.chips[0] >= state.chips[1])


@njit
def returns(state, out):
    """Write the chips that each seat has won or lost."""
    if state.chips[0] == state.chips[1]:
        winner = 0 if state.cards[0] > state.cards[1] else 1
    else:
        winner = 0 if state.chips[0] > state.chips[1] else 1
    out[winner] = state.chips[1 - winner]
    out[1 - winner] = -np.float32(state.chips[1 - winner])


@njit
def honest(state, random_bits):
    """Bet and call with the king only."""
    return BET if state.cards[state.turn] > QUEEN else PASS


@njit
def equilibrium(state, random_bits):
    """Play an equilibrium strategy for bets of one chip: no opponent can win from it.

    It calls with the king, with the queen one time in three, never with the jack. After a pass, seat 1 bets its king,
    and its jack one time in three. Seat 0 always passes first: the simplest of Kuhn's equilibria.
    """
    seat = state.turn
    card = state.cards[seat]
    chance = 0.0
    if state.chips[1 - seat] > state.chips[seat]:
        chance = 1.0 if card > QUEEN else 0.0 if card == JACK else 1 / 3
    elif seat == 1:
        chance = 1.0 if card > QUEEN else 1 / 3 if card == JACK else 0.0
    return BET if uniform(random_bits) < chance else PASS


def rows(hand, seat):
    """Return the rows for the seat's card and all moves."""
    yield Row("own card", (CARD_TEXT[hand.start[0]["cards"][seat]],), cards=True)
    yield Row("played", tuple(ACTION_TEXT[action] for action in hand.actions) or ("nothing",))


def reshuffle_hidden(states, seat, random):
    """Give the other seat any card but that of `seat`, in place."""
    own = states[0]["cards"][seat]
    states["cards"][0, 1 - seat] = random.choice([card for card in range(3) if card != own])


PRESENTATION = Presentation(
    rows=rows,
    phases=("first action", "second action", "third action"),
    phase=lambda states: states["moves"].astype(np.int64),
    units=lambda game: {"result": ("chips", 1.0)},
    judging=Judging(units=lambda game: {"result": ("chips", 1.0, 0.0)}),
)
GAME = game(
    STATE, deal, legal, apply, observe, over, returns,
    actions=ACTION_TEXT, sees=SEES, options=Options, unit="chips", total=0, policies=[honest, equilibrium],
    presentation=PRESENTATION,
)  # fmt: skip
RECIPE = {  # small: there are only twelve situations, learned in seconds
    "network": {"hidden": [64]},
    "target": {"kind": "target_network", "n_step": 1},
    "learner": {"batch_size": 256, "learning_starts": 1000},
    "exploration": {"fraction": 0.5},
    "evaluation": {"opponents": ["random", "honest", "equilibrium"], "best_metric": "result"},
}
