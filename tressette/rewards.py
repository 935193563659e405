"""Rewards of Tressette; each adds every seat's reward for an action to `totals`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit
from busso.tressette.cards import ACE, RANKS, TWO
from busso.tressette.rules import NO_CARD, POINTS, SEATS, over, points

WIN = 3  # bonus for winning the hand in points_and_win, in points of the own team
# In the study's reward, a trick is worth 0.5, plus 0.3 for each high card in it.
_TRICK_WORTH = np.array([0.5 + 0.3 * high for high in range(SEATS + 1)])


@njit
def _difference(state: Any, seat: int) -> int:
    return points(state, seat & 1) - points(state, (seat & 1) ^ 1)


@njit
def by_points(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add, at the end, the own team's point difference over the 11 points of a hand: -1 to 1."""
    if over(after):
        for seat in range(SEATS):
            totals[seat] += _difference(after, seat) / POINTS


@njit
def by_win(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add, at the end, 1 for the team with more points and -1 for the other."""
    if over(after):
        for seat in range(SEATS):
            totals[seat] += 1.0 if _difference(after, seat) > 0 else -1.0


@njit
def by_points_and_win(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add, at the end, the point difference, plus WIN for the team with more points, over 11: -14/11 to 14/11."""
    if over(after):
        for seat in range(SEATS):
            difference = _difference(after, seat)
            totals[seat] += (difference + WIN if difference > 0 else difference - WIN) / POINTS


@njit
def by_study(before: Any, card: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add the reward of the published study, which pays for every card.

    The acting seat earns -0.2 for playing an ace, -0.1 for a 2 or 3 and 0.05 for any other card; if its card closes the
    trick, 0.5 if its team takes it, plus 0.3 for each ace, 2 or 3 in it, and -0.5 otherwise. At the end every seat
    earns its team's point difference, in points.
    """
    seat = before.turn
    strength = card % RANKS
    totals[seat] += -0.2 if strength == ACE else (-0.1 if strength >= TWO else 0.05)
    if before.plays & 3 == 3:
        if (after.last_taker ^ seat) & 1 == 0:
            high = 1 if strength >= ACE else 0
            for other in range(SEATS):
                if before.trick[other] != NO_CARD and before.trick[other] % RANKS >= ACE:
                    high += 1
            totals[seat] += _TRICK_WORTH[high]
        else:
            totals[seat] -= 0.5
    if over(after):
        for other in range(SEATS):
            totals[other] += _difference(after, other)


REWARDS = {"points": by_points, "win": by_win, "points_and_win": by_points_and_win, "study": by_study}
