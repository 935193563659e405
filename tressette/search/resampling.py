"""Resampling of worlds by likelihood, and elimination of clearly worse cards, in compiled loops over decisions."""

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import next_bits
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import below, uniform

FEWEST = 8  # worlds needed to estimate the error of a difference between two cards


@njit(nogil=True)
def resample(
    log_likelihood: NDArray[np.float64],
    games: NDArray[np.int64],
    generators: NDArray[np.uint64],
    picked: NDArray[np.int64],
    times: NDArray[np.int64],
) -> None:
    """Pick worlds for each decision, once per column of `picked`, in proportion to their likelihood.

    Systematic resampling (Kitagawa, 1996). `log_likelihood` is `[decisions, worlds]`. Each picked world appears once in
    `picked[decision]`, in random order; `times` holds how often it was picked, 0 in the remaining columns.
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
def drop_clearly_worse(
    values: NDArray[np.float64],
    worth: NDArray[np.float32],
    times: NDArray[np.int64],
    errors: float,
    alive: NDArray[np.bool_],
) -> None:
    """Remove from `alive` the cards whose value is clearly below the best, by standard `errors`: `[decisions, cards]`.

    The error is that of the mean difference between the two cards on the same worlds. `times`, `[decisions, worlds]`,
    holds the weight of each world; with fewer than `FEWEST` worlds all cards stay. `worth` are the results,
    `[decisions, cards, worlds]`.
    """
    for k in range(len(values)):
        if np.count_nonzero(times[k]) < FEWEST:
            continue
        best, total = values[k].argmax(), times[k].sum()
        for card in np.flatnonzero(alive[k]):
            apart = (worth[k, best] - worth[k, card]).astype(np.float64)
            away = times[k] * (apart - (times[k] * apart).sum() / total)
            if values[k, best] - values[k, card] > errors * np.sqrt((away * away).sum()) / total:
                alive[k, card] = False
