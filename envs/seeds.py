"""Seeds of the games that follow a seeded one."""

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, mix

Seeds = NDArray[np.uint64]


def later_seeds(first: Seeds, numbers: Seeds) -> Seeds:
    """Return the seed of game `numbers[k]` after that of `first[k]`, from splitmix64's stream; game 0 is the first."""
    return np.where(numbers == 0, first, mix(first + numbers * GAMMA))


@njit
def later_seed(first: np.uint64, number: np.uint64) -> np.uint64:
    """Return one such seed."""
    return first if number == np.uint64(0) else mix(first + number * GAMMA)
