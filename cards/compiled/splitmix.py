"""splitmix64: the random generator of every game state, from which all seeds are derived.

Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014; the constants are those
of Vigna's public-domain splitmix64.c.
"""

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit

GAMMA = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_LOW = np.uint64(0xFFFFFFFF)


@njit
def mix(z: np.uint64) -> np.uint64:
    """Apply the 64-bit finaliser to a word or an array of them: a bijection whose output looks random."""
    z = (z ^ (z >> np.uint64(30))) * _FIRST
    z = (z ^ (z >> np.uint64(27))) * _SECOND
    return z ^ (z >> np.uint64(31))


@njit
def below(bits: np.uint64, n: int) -> np.int64:
    """Return an integer in [0, n), n < 2**32, from 64 random bits; the bias is below n / 2**32 (multiply-shift)."""
    return np.int64(((bits >> np.uint64(32)) * np.uint64(n)) >> np.uint64(32))


@njit
def below_wide(bits: np.uint64, n: np.uint64) -> np.uint64:
    """Return an integer in [0, n), n > 0, from 64 random bits (upper word of the product); bias below n / 2**64."""
    high, low = bits >> np.uint64(32), bits & _LOW
    n_high, n_low = n >> np.uint64(32), n & _LOW
    carried = high * n_low + ((low * n_low) >> np.uint64(32))
    return high * n_high + (carried >> np.uint64(32)) + ((low * n_high + (carried & _LOW)) >> np.uint64(32))


@njit
def uniform(bits: np.uint64) -> float:
    """Return a float in [0, 1) from the upper 53 of 64 random bits."""
    return np.float64(bits >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@njit
def shuffle(n: int, seed: np.uint64) -> NDArray[np.uint8]:
    """Return a uniformly random order of the numbers below n, at most 256, determined by the seed."""
    order = np.empty(n, np.uint8)
    random = mix(seed)
    for place in range(n):
        random += GAMMA
        other = below(mix(random), place + 1)
        order[place] = order[other]
        order[other] = place
    return order


def stream(seed: int, name: str, first: int, count: int) -> NDArray[np.uint64]:
    """Return seeds `first .. first + count - 1` of a run's stream `name`; streams start at unrelated points."""
    start = seed & 0xFFFFFFFFFFFFFFFF
    for byte in name.encode():
        start = int(mix(np.uint64(start ^ byte)))
    return np.asarray(mix(np.uint64(start) + GAMMA * np.arange(first + 1, first + count + 1, dtype=np.uint64)))


def derive(seeds: NDArray[np.uint64], salt: int) -> NDArray[np.uint64]:
    """Derive independent generators for the same games: one per seed, different for each salt."""
    # salt + 1, since mix(0) is 0 and the unsalted seeds deal the games.
    return np.asarray(mix(seeds ^ np.uint64(mix(np.uint64(salt + 1)))))
