"""Drawing and shuffling. While the deck is not fully ordered, each card is drawn at random from the rest."""

from typing import Any

import numpy as np

from busso.cards.compiled.bits import bit, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix
from busso.spike.cards import CARDS
from busso.spike.state import ROUNDS

# Least common multiple of 1 to 8: a lot below it is fair modulo any number of seats.
_LOTS = 840


@njit
def roll(state: Any) -> None:
    """Draw the dice, the lot and the reshuffle seed for a new hand, and take a fresh, unshuffled deck."""
    state.random += GAMMA
    scaled = mix(state.random) >> np.uint64(32)
    for index in range(ROUNDS):
        for die in range(2):
            scaled *= np.uint64(6)
            state.dice[index, die] = 1 + (scaled >> np.uint64(32))
            scaled &= np.uint64(0xFFFFFFFF)
    state.random += GAMMA
    state.lot = below(mix(state.random), _LOTS)
    state.random += GAMMA
    state.shuffle = mix(state.random) | np.uint64(1)
    for card in range(CARDS):
        state.deck[card] = card
    state.ordered = 0


@njit
def _settle_one(state: Any, position: int) -> None:
    state.random += GAMMA
    other = position + below(mix(state.random), CARDS - position)
    state.deck[position], state.deck[other] = state.deck[other], state.deck[position]
    state.ordered = position + 1


@njit
def settle(state: Any) -> None:
    """Shuffle the rest of the deck now, in the same order as if drawn card by card."""
    for position in range(state.ordered, CARDS):
        _settle_one(state, position)


@njit
def skip_rest(state: Any) -> None:
    """Advance the generator as if the whole deck had been drawn, so that later hands do not depend on the draws."""
    state.random += GAMMA * np.uint64(CARDS - state.ordered)


@njit
def draw(state: Any) -> int:
    """Draw the next card of the deck."""
    position = state.drawn
    if position >= state.ordered:
        _settle_one(state, position)
    state.drawn += 1
    return state.deck[position]


@njit
def ensure_cards(state: Any, cards: int) -> None:
    """Shuffle in the discards if fewer than `cards` cards are left."""
    if CARDS - state.drawn < cards:
        _reshuffle(state)


@njit
def _reshuffle(state: Any) -> None:
    settle(state)
    start = state.drawn - _put_back(state)
    if state.shuffle != np.uint64(0):
        for position in range(start, CARDS):
            state.shuffle += GAMMA
            other = position + below(mix(state.shuffle), CARDS - position)
            state.deck[position], state.deck[other] = state.deck[other], state.deck[position]
    state.drawn = start


@njit
def _put_back(state: Any) -> int:
    """Move the rest of the deck up and the discards under it, lowest first; return the number of discards."""
    count = popcount(state.discards)
    for position in range(state.drawn, CARDS):
        state.deck[position - count] = state.deck[position]
    for position in range(CARDS - count, CARDS):
        card = lowest(state.discards)
        state.deck[position] = card
        state.discards ^= bit(card)
    return count
