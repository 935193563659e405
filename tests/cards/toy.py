"""Toy game, for tests of code that works with any game.

Two seats get three of eight cards each and play one in turn, seat 0 first. The higher card of each pair scores a point,
so a game has three points. Hands are hidden.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, lowest, nth_bit, put
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.cards.conformance import Case
from busso.cards.game import Game, States
from busso.cards.own.game import game
from busso.cards.own.layout import Layout

CARDS = 8
STATE = np.dtype(
    [
        ("hands", np.uint64, 2),
        ("played", np.uint64, 2),
        ("table", np.uint8),
        ("points", np.uint8, 2),
        ("turn", np.uint8),
    ]
)
SEES = Layout(hand=CARDS, own_played=CARDS, other_played=CARDS)


@njit
def deal(state: Any, seed: np.uint64) -> None:
    state.hands[:] = np.uint64(0)
    state.played[:] = np.uint64(0)
    state.points[:] = 0
    state.table = CARDS
    state.turn = 0
    random, left = mix(seed), bit(CARDS) - np.uint64(1)
    for k in range(6):
        random += GAMMA
        card = nth_bit(left, below(mix(random), CARDS - k))
        left ^= bit(card)
        state.hands[k & 1] |= bit(card)


@njit
def legal(state: Any) -> np.uint64:
    return state.hands[state.turn]


@njit
def apply(state: Any, card: int) -> None:
    state.hands[state.turn] ^= bit(card)
    state.played[state.turn] |= bit(card)
    if state.turn == 0:
        state.table = card
    else:
        state.points[1 if card > state.table else 0] += 1
    state.turn ^= 1


@njit
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    put(words, SEES.hand, state.hands[seat])
    put(words, SEES.own_played, state.played[seat])
    put(words, SEES.other_played, state.played[1 - seat])


@njit
def over(state: Any) -> bool:
    return state.hands[0] | state.hands[1] == np.uint64(0)


@njit
def returns(state: Any, out: NDArray[np.float32]) -> None:
    out[0] = state.points[0]
    out[1] = state.points[1]


@njit
def by_pair(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    for seat in range(2):
        totals[seat] += after.points[seat] - before.points[seat]


@njit
def lowest_card(state: Any, random_bits: np.uint64) -> int:
    return lowest(state.hands[state.turn])


TOY = game(
    *(STATE, deal, legal, apply, observe, over, returns),
    name="toy",
    actions=[str(card) for card in range(CARDS)],
    sees=SEES,
    total=3,
    rewards={"pair": by_pair},
    policies={"lowest": lowest_card},
)


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Give the other seat a new hand of cards that `seat` has not seen, in place."""
    seen = int(states["hands"][0, seat] | states["played"][0, 0] | states["played"][0, 1])
    unseen = [card for card in range(CARDS) if not seen >> card & 1]
    count = int(states["hands"][0, 1 - seat]).bit_count()
    states["hands"][0, 1 - seat] = sum(1 << int(card) for card in random.choice(unseen, count, replace=False))


def toy_case(game: Game = TOY) -> Case:
    """Return the toy game, or a variant, for the conformance kit."""
    return Case(game, reshuffle_hidden, games=16, max_moves=50)
