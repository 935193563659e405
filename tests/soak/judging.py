"""Growth of a sampled measure of a process or folder: a slope that is robust to outliers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FEWEST, FEWEST_AT_REST = 40, 3  # fewest judged samples: two minutes, or three lives
_MOST = 400  # samples used for the slope, evenly spread: it compares all pairs


@dataclass(frozen=True)
class Tolerance:
    """Greatest growth within the judged time: a share of the median or an amount, whichever is more."""

    share: float
    amount: float
    whole: bool = False  # judged from the first sample, not only in the second half: few samples, each at rest


MEGABYTE = 1e6
TOLERANCES = {
    "memory": Tolerance(0.05, 16 * MEGABYTE),
    "descriptors": Tolerance(0.05, 3),
    "threads": Tolerance(0.05, 3),
    "files": Tolerance(0.05, 3),
    "bytes": Tolerance(0.05, 16 * MEGABYTE),
    "processes": Tolerance(0.0, 1),
    "files left": Tolerance(0.05, 3, whole=True),
    "bytes left": Tolerance(0.05, 16 * MEGABYTE, whole=True),
}


def judge(seconds: Sequence[float], values: Sequence[float], tolerance: Tolerance) -> str:
    """Return how the samples of one life, in order, grow beyond the tolerance; empty if they do not or are too few."""
    at, seen = np.asarray(seconds, np.float64), np.asarray(values, np.float64)
    late = at >= (at[0] if tolerance.whole else (at[0] + at[-1]) / 2)
    at, seen = at[late], seen[late]
    if at.size < (FEWEST_AT_REST if tolerance.whole else FEWEST):
        return ""
    growth = slope(at, seen) * (at[-1] - at[0])
    allowed = max(tolerance.amount, tolerance.share * float(np.median(seen)))
    return f"grew by {growth:,.0f}, more than {allowed:,.0f}" if growth > allowed else ""


def slope(at: NDArray[np.float64], values: NDArray[np.float64]) -> float:
    """Return the Theil-Sen slope: the median over all pairs. Up to 29% of the values may be outliers."""
    if at.size > _MOST:
        chosen = np.linspace(0, at.size - 1, _MOST).round().astype(int)
        at, values = at[chosen], values[chosen]
    first, second = np.triu_indices(at.size, 1)
    apart = at[second] - at[first]
    return float(np.median((values[second] - values[first])[apart > 0] / apart[apart > 0]))


def faults(lives: Mapping[tuple[str, str], tuple[Sequence[float], Sequence[float]]]) -> list[str]:
    """Return a line for each series, by owner and measure, that grows by more than its tolerance."""
    judged = {key: judge(*series, TOLERANCES[key[1]]) for key, series in lives.items() if key[1] in TOLERANCES}
    return [f"{owner}: {measure} {says}" for (owner, measure), says in judged.items() if says]
