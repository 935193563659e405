"""Rewards of Sette e mezzo, all paid at the end of the game."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit
from busso.cards.tabular.multisets import over
from busso.sette_mezzo.rules import result

# The reward of a win, a tie and a loss.
PAYOFFS = {"value": (1.0, 0.0, -1.0), "study": (1.0, 1.0, -1.0)}


@njit
def by_value(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add 1 for a win, 0 for a tie, -1 for a loss."""
    if over(after):
        totals[0] += result(after)


@njit
def by_study(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add the reward of the published study, which counts a tie as a win."""
    if over(after):
        totals[0] += 1.0 if result(after) >= 0 else -1.0


REWARDS = {"value": by_value, "study": by_study}
