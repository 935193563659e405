"""The choices of a search of settings, in Hydra's grammar: `1,2,4`, `range(1,5)`, `interval(0.1,1)`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Any number from `low` to `high`, both included; with `log` its logarithm is drawn, not the number itself."""

    low: float
    high: float
    log: bool = False
    whole: bool = False  # integers alone


@dataclass(frozen=True)
class Categorical:
    """One of these values, each as it may be typed behind `key=`."""

    values: tuple[str, ...]


Dimension = Interval | Categorical
