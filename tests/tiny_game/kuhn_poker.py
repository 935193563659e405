"""Kuhn poker: two seats, three cards, one bet. Its value is known exactly: seat 0 loses 1/18 of a chip a game.

Three cards, jack, queen and king. Each seat antes a chip and gets one card; the third stays face down. Seat 0 begins: a
seat may pass or bet, and whoever faces a bet passes (folds) or bets as much (calls). Two passes or a call end the game:
the higher card takes what both have put in. A fold leaves it to the other seat.

H. W. Kuhn (1950), "A simplified two-person poker", Contributions to the Theory of Games 1.
"""

from dataclasses import dataclass

import numpy as np

from busso.cards.base.bounds import bounded
from busso.cards.presentation import Judging, Presentation, Row
from busso.kit import GAMMA, Layout, below, bit, game, mix, njit, put, uniform

CARD_TEXT, ACTION_TEXT = "JQK", ("pass", "bet")
JACK, QUEEN = 0, 1
PASS, BET = 0, 1
STATE = np.dtype([
    ("cards", np.uint8, 2),  # of each seat: 0 jack, 1 queen, 2 king
    ("chips", np.uint8, 2),  # that each seat has put in
    ("moves", np.uint8),  # actions so far
    ("turn", np.uint8),  # the seat to move
    ("bet", np.uint8),  # option
])  # fmt: skip
SEES = Layout(own_card=list(CARD_TEXT), own_bet=1, other_bet=1, first=1)


@dataclass(frozen=True)
class Options:
    """Rule options: a bet costs `bet` chips, 1 to 10."""

    bet: int = bounded(1, 1, 10)


@njit
def deal(state, seed):
    """Two of the three cards, which follow from the seed."""
    first, second = below(mix(seed), 3), below(mix(seed + GAMMA), 2)
    state.cards[0], state.cards[1] = first, second + 1 if second >= first else second
    state.chips[:] = 1
    state.moves = state.turn = 0


@njit
def legal(state):
    """Pass or bet, until the game is over."""
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
    """The own card, who has bet, and who acts first."""
    put(words, SEES.own_card, bit(state.cards[seat]))
    put(words, SEES.own_bet, np.uint64(state.chips[seat] > 1))
    put(words, SEES.other_bet, np.uint64(state.chips[1 - seat] > 1))
    put(words, SEES.first, np.uint64(seat == 0))


@njit
def over(state):
    """Return whether both have acted, unless the second has bet after a pass and the first has not answered."""
    return state.moves == 3 or (state.moves == 2 and state.chips[0] >= state.chips[1])


@njit
def returns(state, out):
    """The chips that each seat has won or lost."""
    if state.chips[0] == state.chips[1]:
        winner = 0 if state.cards[0] > state.cards[1] else 1
    else:
        winner = 0 if state.chips[0] > state.chips[1] else 1
    out[winner] = state.chips[1 - winner]
    out[1 - winner] = -np.float32(state.chips[1 - winner])


@njit
def honest(state, random_bits):
    """Bets and calls with the king alone."""
    return BET if state.cards[state.turn] > QUEEN else PASS


@njit
def equilibrium(state, random_bits):
    """An optimal play for bets of one chip: whoever sits across wins nothing from it.

    A bet is called with the king, with the queen one time in three, never with the jack. After a pass seat 1 bets its
    king, and its jack one time in three. Seat 0 passes first, whatever its card: of Kuhn's optimal plays the simplest.
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
    """The own card and all that was played."""
    yield Row("own card", (CARD_TEXT[hand.start[0]["cards"][seat]],), cards=True)
    yield Row("played", tuple(ACTION_TEXT[action] for action in hand.actions) or ("nothing",))


def reshuffle_hidden(states, seat, random):
    """Give the other seat any card but that of `seat`, in place."""
    own = states[0]["cards"][seat]
    states["cards"][0, 1 - seat] = random.choice([card for card in range(3) if card != own])


PRESENTATION = Presentation(
    rows=rows,
    situation=lambda game, state, seat: f"own card {CARD_TEXT[state['cards'][seat]]}",
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
RECIPE = {  # twelve situations in all, so that a small network has learned it in seconds
    "network": {"hidden": [64]},
    "target": {"kind": "target_network", "n_step": 1},
    "learner": {"batch_size": 256, "learning_starts": 1000},
    "exploration": {"fraction": 0.5},
    "evaluation": {"opponents": ["random", "honest", "equilibrium"], "best_metric": "result"},
}
