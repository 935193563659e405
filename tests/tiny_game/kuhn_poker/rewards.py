"""Rewards of Kuhn poker."""

from typing import Any

import numpy as np
from kuhn_poker.rules import over, returns
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit


@njit
def by_chips(before: Any, action: int, after: Any, totals: NDArray[np.float32]) -> None:
    """Chips won or lost, at the end of the game."""
    if over(after):
        won = np.zeros(2, np.float32)
        returns(after, won)
        totals += won


REWARDS = {"chips": by_chips}
