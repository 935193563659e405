"""The rules of Kuhn poker for two seats.

Three cards, jack, queen and king. Each seat antes a chip and gets one card; the third stays face down. Seat 0 begins: a
seat may pass or bet, and whoever faces a bet passes (folds) or bets as much (calls). Two passes or a call end the game:
the higher card takes what both have put in. A fold leaves it to the other seat.

H. W. Kuhn (1950), "A simplified two-person poker", Contributions to the Theory of Games 1.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from kuhn_poker.observation import observe
from numpy.typing import NDArray

from busso.cards.base.bounds import bounded, check_bounds
from busso.cards.compiled.batch import Rules
from busso.cards.compiled.bits import bit
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix

CARD_TEXT = "JQK"
PASS, BET = 0, 1
ACTION_TEXT = ("pass", "bet")
ANTE = 1
MAX_BET = 10

STATE = np.dtype(
    [
        ("cards", np.uint8, 2),  # of each seat: 0 jack, 1 queen, 2 king
        ("chips", np.uint8, 2),  # that each seat has put in
        ("moves", np.uint8),  # actions so far
        ("turn", np.uint8),  # the seat to move
        ("bet", np.uint8),  # option
    ],
    align=True,
)


@dataclass(frozen=True)
class Options:
    """Rule options: a bet costs `bet` chips, 1 to 10."""

    bet: int = bounded(1, 1, MAX_BET)


def blank(options: Options) -> np.void:
    """A state that holds the options and nothing else. Raises ValueError for a bad option."""
    check_bounds("game", options)
    state = np.zeros(1, STATE)
    state["bet"] = options.bet
    return state[0]


@njit
def begin(state: Any, first_card: int, second_card: int) -> None:
    """Both have their card and have put in their ante."""
    state.cards[0], state.cards[1] = first_card, second_card
    state.chips[:] = ANTE
    state.moves = 0
    state.turn = 0


@njit
def deal(state: Any, seed: np.uint64) -> None:
    """Two of the three cards, which follow from `seed`."""
    first = below(mix(seed), 3)
    second = below(mix(seed + GAMMA), 2)
    begin(state, first, second + 1 if second >= first else second)


@njit
def legal(state: Any) -> np.uint64:
    """Pass or bet, until the game is over."""
    return np.uint64(0) if over(state) else bit(PASS) | bit(BET)


@njit
def apply(state: Any, action: int) -> None:
    """Pass or bet; the other seat is next."""
    if action == BET:
        state.chips[state.turn] += state.bet
    state.moves += 1
    state.turn ^= 1


@njit
def over(state: Any) -> bool:
    """Whether both have acted, unless the second has bet after a pass and the first has not answered."""
    return state.moves == 3 or (state.moves == 2 and state.chips[0] >= state.chips[1])


@njit
def returns(state: Any, out: NDArray[np.float32]) -> None:
    """The chips that each seat has won or lost."""
    if state.chips[0] == state.chips[1]:
        winner = 0 if state.cards[0] > state.cards[1] else 1
    else:
        winner = 0 if state.chips[0] > state.chips[1] else 1
    out[winner] = state.chips[1 - winner]
    out[1 - winner] = -np.float32(state.chips[1 - winner])


RULES = Rules(deal, legal, apply, observe, over, returns)
