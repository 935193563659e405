"""Made-up transitions for replay buffers."""

import numpy as np

from busso.train.rollout.transitions import LambdaTransitions, NStepTransitions


def rows(first: int, count: int, discount: float = 0.5) -> NStepTransitions:
    """Return rows in which row k has k in every column, so that mixed-up columns are noticed.

    Its successor is k + 1 + k % 3; it has none if that is not among these rows or if the discount is 0.
    """
    numbers = np.arange(first, first + count)
    words = np.stack([numbers, numbers + 1000], axis=1).astype(np.uint64)
    distance = 1 + numbers % 3
    has_one = (numbers + distance < first + count) & (discount > 0)
    return NStepTransitions(
        words,
        numbers.astype(np.uint64) | np.uint64(1 << 63),
        (numbers % 40).astype(np.uint8),
        numbers.astype(np.float32),
        np.where(has_one, discount, 0).astype(np.float32),
        np.where(has_one, distance, 0).astype(np.int32),
    )


def lambda_rows(first: int, count: int) -> LambdaTransitions:
    """Return the same rows with targets instead of successors."""
    whole = rows(first, count)
    return LambdaTransitions(whole.observation, whole.action, whole.n_step_return)
