"""The rewards of Corellian Spike. Each adds what an action earns every seat to `totals`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit
from busso.spike.cards import BUY, MATCH, VALUES
from busso.spike.rules import price
from busso.spike.showdown import card_sum

# Of the published study.
POOL_WEIGHT = 31.0
BOUGHT_WEIGHT = 0.75


@njit
def by_stack(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """After each hand, the change of the seat's credits over the hand as a share of the credits it started with."""
    for seat in range(after.players):
        totals[seat] += (after.stakes[seat] - before.stakes[seat]) / after.start_credits


@njit
def by_credits(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """The seat to move pays what its action costs; the winner of a hand earns the pool. Antes are not counted."""
    totals[before.turn] -= price(before, action)
    for seat in range(after.players):
        totals[seat] += after.winnings[seat] - before.winnings[seat]


@njit
def min_sum(state: Any, seat: int) -> int:
    """The smallest |sum| of three of the seat's four cards, once it has bought one."""
    bought = np.int64(VALUES[state.bought])
    own = card_sum(state, seat)
    smallest = abs(own)
    for card in (state.hands[seat, 0], state.hands[seat, 1], state.spikes[seat]):
        smallest = min(smallest, abs(own + bought - VALUES[card]))
    return smallest


@njit
def by_weight(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """The weighted reward of the published study.

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
