"""Toy game, for tests of code that works with any game.

Two seats get three of eight cards each and play one in turn, seat 0 first. The higher card of each pair scores a point,
so a game has three points. Hands are hidden.
"""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import Rules
from busso.cards.compiled.bits import bit, lowest, nth_bit, put
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.cards.conformance import Case
from busso.cards.game import Game, States
from busso.cards.hand import NO_SEEDS, Hand, Replayed

CARDS = 8
STATE = np.dtype(
    [
        ("hands", np.uint64, 2),
        ("played", np.uint64, 2),
        ("table", np.uint8),
        ("points", np.uint8, 2),
        ("turn", np.uint8),
    ],
    align=True,
)


@dataclasses.dataclass(frozen=True)
class Options:
    """No options."""


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
    put(words, 0, state.hands[seat])
    put(words, CARDS, state.played[seat])
    put(words, 2 * CARDS, state.played[1 - seat])


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


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    return {"game": "toy", "hands": [int(hand) for hand in start["hands"]], "actions": actions}


def read(record: dict[str, Any]) -> Replayed:
    state = TOY.deal(np.zeros(1, np.uint64))
    state["hands"] = record["hands"]
    hand = Hand(TOY, NO_SEEDS, state)
    for action in record["actions"]:
        hand.play(action)
    return Replayed([hand], {"points": hand.state[0]["points"].tolist()})


def blank_for(options: Options) -> np.void:
    return np.zeros(1, STATE)[0]


TOY = Game(
    name="toy",
    blank_for=blank_for,
    options=Options(),
    rules=Rules(deal, legal, apply, observe, over, returns),
    seats=2,
    teams=((0,), (1,)),
    actions=CARDS,
    bits=3 * CARDS,
    unit="points",
    total=3.0,
    rewards={"pair": by_pair},
    policies={"lowest": lowest_card},
    action_text=str,
    record=record,
    read=read,
)


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Give the other seat a new hand of cards that `seat` has not seen, in place."""
    seen = int(states["hands"][0, seat] | states["played"][0, 0] | states["played"][0, 1])
    unseen = [card for card in range(CARDS) if not seen >> card & 1]
    count = int(states["hands"][0, 1 - seat]).bit_count()
    states["hands"][0, 1 - seat] = sum(1 << int(card) for card in random.choice(unseen, count, replace=False))


def toy_case(game: Game = TOY) -> Case:
    """Return the toy game, or a variant, for the conformance kit."""
    return Case(game, reshuffle_hidden, lambda result: result["points"], games=16, max_moves=50)
