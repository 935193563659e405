"""From likelihoods to worlds, and from values to the cards worth another look: compiled loops over decisions."""

import numpy as np
from numpy.typing import NDArray

from cards.compiled.batch import next_bits
from cards.compiled.jit import njit
from cards.compiled.splitmix import below, uniform


@njit(nogil=True)
def resample(
    log_likelihood: NDArray[np.float64],
    games: NDArray[np.int64],
    generators: NDArray[np.uint64],
    picked: NDArray[np.int64],
    times: NDArray[np.int64],
) -> None:
    """Pick worlds of each decision, as often as `picked` has places, in proportion to their likelihood.

    Systematic resampling (Kitagawa, 1996). `log_likelihood` is `[decisions, worlds]`. Each world picked stands once in
    `picked[decision]`, in random order, and in `times` stands how often it was: 0 in the places that are left.
    """
    decisions, samples = picked.shape
    for k in range(decisions):
        weights = np.exp(log_likelihood[k] - log_likelihood[k].max())
        step = weights.sum() / samples
        wanted, world, reached = step * uniform(next_bits(generators, games[k])), 0, weights[0]
        times[k] = 0
        last, count = -1, 0
        for _ in range(samples):
            while reached < wanted and world + 1 < weights.size:
                world += 1
                reached += weights[world]
            if world != last:
                picked[k, count], last = world, world
                count += 1
            times[k, count - 1] += 1
            wanted += step
        for i in range(count - 1):
            j = i + below(next_bits(generators, games[k]), count - i)
            picked[k, i], picked[k, j] = picked[k, j], picked[k, i]
            times[k, i], times[k, j] = times[k, j], times[k, i]


@njit(nogil=True)
def keep_better_half(values: NDArray[np.float64], alive: NDArray[np.bool_]) -> None:
    """Leave the better half of the cards `alive` in each decision, rounded up, but at least two: `[decisions, cards]`.

    Sequential halving: Karnin, Koren and Somekh (2013), Almost optimal exploration in multi-armed bandits, figure 1.
    """
    for k in range(len(values)):
        cards = np.flatnonzero(alive[k])
        wanted = max(2, (cards.size + 1) // 2)
        order = np.argsort(-values[k][cards], kind="mergesort")
        for place in order[wanted:]:
            alive[k, cards[place]] = False
