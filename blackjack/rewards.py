"""The rewards of Blackjack."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.blackjack.rules import result
from busso.cards.compiled.jit import njit
from busso.cards.tabular.multisets import over


@njit
def by_value(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """At the end, 1 for a win, -1 for a loss, 0 for a tie where ties push."""
    if over(after):
        totals[0] += result(after)


REWARDS = {"value": by_value}
