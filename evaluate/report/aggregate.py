"""Runs of several seeds as one: the interquartile mean and its interval, as rliable has them.

After Agarwal, Schwarzer, Castro, Courville and Bellemare, 2021, "Deep Reinforcement Learning at the Edge of the
Statistical Precipice" (arXiv:2108.13264), whose own library brings pandas, SciPy and statsmodels with it. Here a task
is an opponent, and a score the share of games won against it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cards.matches.duplicate import Estimate

Scores = NDArray[np.float64]  # [runs, tasks]
SAMPLES = 2000


def interquartile_mean(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean without the lowest and the highest quarter, over the last axis (section 4.3); whole numbers cut off."""
    ordered = np.sort(scores, axis=-1)
    cut = ordered.shape[-1] // 4
    mean: NDArray[np.float64] = ordered[..., cut : ordered.shape[-1] - cut].mean(axis=-1)
    return mean


def with_interval(scores: Scores, seed: int, samples: int = SAMPLES) -> Estimate:
    """The interquartile mean over runs and tasks with its 95% interval by a stratified bootstrap (section 4.1).

    Each sample draws as many runs with replacement, for each task anew. One run has no interval: it is infinite.
    """
    mean = float(interquartile_mean(scores.ravel()))
    if len(scores) < 2:
        return Estimate(mean, float("-inf"), float("inf"))
    drawn = interquartile_mean(_resampled(scores, samples, np.random.default_rng(seed)).reshape(samples, -1))
    low, high = np.quantile(drawn, (0.025, 0.975))
    return Estimate(mean, float(low), float(high))


def _resampled(scores: Scores, samples: int, random: np.random.Generator) -> NDArray[np.float64]:
    """`[samples, runs, tasks]`, each task with runs of its own."""
    runs, tasks = scores.shape
    picked = random.integers(runs, size=(samples, runs, tasks))
    return scores[picked, np.arange(tasks)]


def probability_of_improvement(first: Scores, second: Scores, seed: int, samples: int = SAMPLES) -> Estimate:
    """How likely a run of the first beats one of the second, mean over tasks; a tie counts one half (section 4.3)."""
    random = np.random.default_rng(seed)
    own, other = (_resampled(scores, samples, random) for scores in (first, second))
    mean = float(_better(first[None], second[None])[0])
    if len(first) < 2 or len(second) < 2:
        return Estimate(mean, 0.0, 1.0)
    low, high = np.quantile(_better(own, other), (0.025, 0.975))
    return Estimate(mean, float(low), float(high))


def _better(own: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """`[samples]`: the mean over tasks of the Mann-Whitney statistic of each."""
    pairs = (np.sign(own[:, :, None, :] - other[:, None, :, :]) + 1) / 2
    share: NDArray[np.float64] = pairs.mean(axis=(1, 2, 3))
    return share
