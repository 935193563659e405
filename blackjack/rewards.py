"""Rewards of Blackjack."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.blackjack.rules import result
from busso.cards.compiled.jit import njit
from busso.cards.tabular.multisets import over


@njit
def by_value(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Add 1 for a win, -1 for a loss, 0 for a tie (with `ties: push`) when the game ends."""
    if over(after):
        totals[0] += result(after)


REWARDS = {"value": by_value}
