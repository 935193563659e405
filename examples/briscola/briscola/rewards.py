"""Rewards of Briscola."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from briscola.rules import POINTS, over
from busso.cards.compiled.jit import njit


@njit
def by_points(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """With each trick, its points over 60 for the seat that takes it, and as much less for the other."""
    for seat in range(2):
        won = np.float32(after.points[seat]) - np.float32(before.points[seat])
        totals[seat] += won / (POINTS // 2)
        totals[1 - seat] -= won / (POINTS // 2)


@njit
def by_win(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """At the end, 1 for more than 60 points, -1 for less; 60 to 60 is a tie, 0."""
    if over(after):
        for seat in range(2):
            totals[seat] += np.sign(np.float32(after.points[seat]) - np.float32(POINTS // 2))


REWARDS = {"points": by_points, "win": by_win}
