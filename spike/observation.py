"""Observation of a seat in Corellian Spike as packed bits. Seats are relative to the observer, who is seat 0.

The layout is the same for 2 to 8 seats; blocks of empty seats stay zero.

| bits    | meaning                                                                                  |
|---------|------------------------------------------------------------------------------------------|
| 0-83    | own lower and higher hand card, own spike card, bought card: value -10 to 10, one-hot     |
| 84-114  | own sum from -15 to 15 (capped), one-hot                                                 |
| 115-147 | |sum| 0 to 10 (capped) after swapping the bought card with spike, lower, higher, one-hot |
| 148-462 | relative seat 1 to 7, 45 bits each: taken, in the hand, all-in, still to act in this     |
|         | phase, spike card (21, one-hot), credits (20, thermometer)                               |
| 463-482 | own credits, thermometer                                                                 |
| 483-502 | pool, thermometer                                                                        |
| 503-522 | second pot, thermometer                                                                  |
| 523     | there is an amount to match                                                              |
| 524-527 | round 0 to 3, one-hot                                                                    |
| 528-530 | phase: bet, buy, exchange, one-hot                                                       |
| 531-538 | who raised last in this betting round, one-hot by relative seat                          |
| 539-542 | raises in this betting round, thermometer                                                |
| 543-604 | open discards: how many of each value, -10 to 10, thermometer                            |
| 605-612 | who acts first in this hand, one-hot by relative seat                                    |
| 613-622 | hands still to come after this one, thermometer                                          |

Thermometers of credits set one bit for each of the LEVELS reached.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.bits import bit, put, put_thermometer
from busso.cards.compiled.jit import njit
from busso.spike.cards import CARDS, FACES, MAX_VALUE, NO_CARD, VALUES, card_sum
from busso.spike.state import MAX_SEATS, NO_SEAT, OVER

LEVELS = (2, 4, 6, 8, 10, 14, 18, 22, 26, 30, 36, 42, 48, 54, 60, 70, 80, 100, 150, 200)
OWN_CARDS = 0
OWN_SUM = OWN_CARDS + 4 * FACES
SWAPPED_SUMS = OWN_SUM + 31
OTHERS = SWAPPED_SUMS + 3 * 11
OTHER_SPIKE, OTHER_CREDITS = 4, 4 + FACES
OTHER_BITS = OTHER_CREDITS + len(LEVELS)
OWN_CREDITS = OTHERS + (MAX_SEATS - 1) * OTHER_BITS
POOL = OWN_CREDITS + len(LEVELS)
SECOND_POT = POOL + len(LEVELS)
TO_MATCH = SECOND_POT + len(LEVELS)
ROUND = TO_MATCH + 1
PHASE = ROUND + 4
RAISER = PHASE + 3
RAISES = RAISER + MAX_SEATS
DISCARDS = RAISES + 4
FIRST = DISCARDS + CARDS
HANDS_LEFT = FIRST + MAX_SEATS
BITS = HANDS_LEFT + 10


_LEVEL_OF = np.searchsorted(LEVELS, np.arange(LEVELS[-1] + 1), side="right").astype(np.uint8)
# The first card of each value with three cards, and the first zero; see `_counts`.
_FIRST_OF_THREE = np.uint64(sum(1 << card for card in (*range(0, 30, 3), *range(32, CARDS, 3))))
_FIRST_ZERO = np.uint64(1 << 30)


@njit
def observe(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    """OR the observation of `seat` into the zeroed `words`. Empty seats see nothing, only the mover a bought card."""
    if seat >= state.players:
        return
    _put_own(state, seat, words)
    for relative in range(1, state.players):
        _put_other(state, (seat + relative) % state.players, words, OTHERS + OTHER_BITS * (relative - 1))
    _put_credits(words, OWN_CREDITS, state.credits[seat])
    _put_credits(words, POOL, state.pool)
    _put_credits(words, SECOND_POT, state.second_pot)
    put(words, ROUND, bit(state.round))
    if state.phase != OVER:
        put(words, PHASE, bit(state.phase))
    if state.raiser != NO_SEAT:
        put(words, TO_MATCH, np.uint64(1))
        put(words, RAISER, bit((state.players + state.raiser - seat) % state.players))
    put_thermometer(words, RAISES, min(state.raises, 4))
    put(words, DISCARDS, _counts(state.discards))
    put(words, FIRST, bit((state.players + state.first - seat) % state.players))
    put_thermometer(words, HANDS_LEFT, min(max(state.hand_limit - state.hands_played - 1, 0), 10))


@njit
def _put_card(words: NDArray[np.uint64], offset: int, card: int) -> None:
    put(words, offset, bit(VALUES[card] + MAX_VALUE))


@njit
def _put_credits(words: NDArray[np.uint64], offset: int, credits: int) -> None:
    put_thermometer(words, offset, _LEVEL_OF[min(credits, 200)])


@njit
def _put_own(state: Any, seat: int, words: NDArray[np.uint64]) -> None:
    low, high, spike = state.hands[seat, 0], state.hands[seat, 1], state.spikes[seat]
    total = card_sum(state, seat)
    _put_card(words, OWN_CARDS, low)
    _put_card(words, OWN_CARDS + FACES, high)
    put(words, OWN_SUM, bit(min(max(total, -15), 15) + 15))
    if spike == NO_CARD:
        return
    _put_card(words, OWN_CARDS + 2 * FACES, spike)
    if seat == state.turn and state.bought != NO_CARD:
        _put_card(words, OWN_CARDS + 3 * FACES, state.bought)
        total += VALUES[state.bought]
        put(words, SWAPPED_SUMS, bit(min(abs(total - VALUES[spike]), 10)))
        put(words, SWAPPED_SUMS + 11, bit(min(abs(total - VALUES[low]), 10)))
        put(words, SWAPPED_SUMS + 22, bit(min(abs(total - VALUES[high]), 10)))


@njit
def _put_other(state: Any, seat: int, words: NDArray[np.uint64], offset: int) -> None:
    flags = 1
    if (state.in_hand >> seat) & 1:
        flags |= 2 | (4 if state.credits[seat] == 0 else 0)
    flags |= ((state.to_act >> seat) & 1) << 3
    put(words, offset, np.uint64(flags))
    if state.spikes[seat] != NO_CARD:
        _put_card(words, offset + OTHER_SPIKE, state.spikes[seat])
    _put_credits(words, offset + OTHER_CREDITS, state.credits[seat])


@njit
def _counts(cards: np.uint64) -> np.uint64:
    """Move each value's cards to the lowest bits of that value, so that equal cards look the same."""
    second, third = cards >> np.uint64(1), cards >> np.uint64(2)
    two = (cards & second) | (cards & third) | (second & third)
    some = (cards | second | third) & _FIRST_OF_THREE | (cards | second) & _FIRST_ZERO
    both = two & _FIRST_OF_THREE | cards & second & _FIRST_ZERO
    all_three = cards & second & third & _FIRST_OF_THREE
    return some | both << np.uint64(1) | all_three << np.uint64(2)
