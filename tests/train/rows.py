"""Transitions to put into replay buffers."""

import numpy as np

from train.dqn.transitions import Transitions


def rows(first: int, count: int, discount: float = 0.5) -> Transitions:
    """Row k carries k everywhere, so that a mix-up between columns shows."""
    numbers = np.arange(first, first + count)
    words = np.stack([numbers, numbers + 1000], axis=1).astype(np.uint64)
    return Transitions(
        words,
        (numbers % 40).astype(np.uint8),
        numbers.astype(np.float32),
        np.full(count, discount, np.float32),
        words + np.uint64(7),
        numbers.astype(np.uint64) | np.uint64(1 << 63),
    )
