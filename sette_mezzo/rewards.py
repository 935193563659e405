"""The rewards of Sette e mezzo; both come at the end of the game alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit
from busso.cards.tabular.multisets import over
from busso.sette_mezzo.rules import result

# What a win, a tie and a loss are worth under each reward.
PAYOFFS = {"value": (1.0, 0.0, -1.0), "study": (1.0, 1.0, -1.0)}


@njit
def by_value(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """1 for a win, 0 for a tie, -1 for a loss."""
    if over(after):
        totals[0] += result(after)


@njit
def by_study(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """The reward of the published study: a tie counts as a win."""
    if over(after):
        totals[0] += 1.0 if result(after) >= 0 else -1.0


REWARDS = {"value": by_value, "study": by_study}
