"""Rewards of Corellian Spike; each adds every seat's reward for an action to `totals`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit
from busso.spike.cards import BUY, MATCH, VALUES, card_sum
from busso.spike.rules import price

# From the published study.
POOL_WEIGHT = 31.0
BOUGHT_WEIGHT = 0.75


@njit
def by_stack(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add, after each hand, the change of the seat's credits over the hand divided by its initial credits."""
    for seat in range(after.players):
        totals[seat] += (after.stakes[seat] - before.stakes[seat]) / after.start_credits


@njit
def by_credits(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add the pool to the winner of a hand; subtract the price of an action from the seat to move. Antes are free."""
    totals[before.turn] -= price(before, action)
    for seat in range(after.players):
        totals[seat] += after.winnings[seat] - before.winnings[seat]


@njit
def min_sum(state: Any, seat: int) -> int:
    """Return the smallest |sum| of three of the seat's four cards, after it has bought one."""
    bought = np.int64(VALUES[state.bought])
    own = card_sum(state, seat)
    smallest = abs(own)
    for card in (state.hands[seat, 0], state.hands[seat, 1], state.spikes[seat]):
        smallest = min(smallest, abs(own + bought - VALUES[card]))
    return smallest


@njit
def by_weight(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add the weighted reward of the published study.

    Credits paid by a raise or match count (1 + |sum of own cards|) times, those for a bought card (1 + 3/4 of the
    smallest |sum| of three of the four cards) times; the winner of a hand earns 31 times the pool.
    """
    seat = before.turn
    weight = 1.0
    if action == BUY:
        weight += BOUGHT_WEIGHT * min_sum(after, seat)
    elif action <= MATCH:
        weight += abs(card_sum(before, seat))
    totals[seat] -= weight * price(before, action)
    for other in range(after.players):
        totals[other] += POOL_WEIGHT * (after.winnings[other] - before.winnings[other])


REWARDS = {"stack": by_stack, "credits": by_credits, "weighted": by_weight}
