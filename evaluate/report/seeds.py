"""Curves of several runs of one kind as a line with a band."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from evaluate.report.drawing import Line, Numbers
from evaluate.report.runs import Run

POINTS = 240  # of a drawn curve, at most
Curve = tuple[Numbers, Numbers]

BAND = "With several seeds a line is their mean, and the band reaches from the lowest to the highest."


def by_decisions(run: Run, steps: Numbers) -> Numbers:
    """The axis of decisions."""
    return steps


def by_minutes(run: Run, steps: Numbers) -> Numbers:
    """The axis of minutes of training."""
    return run.seconds_at(steps) / 60


Axis = Callable[[Run, Numbers], Numbers]


def band(runs: Sequence[Run], name: str, axis: Axis = by_decisions) -> Line | None:
    """A scalar of runs that differ in their seed alone; None where no run has it.

    Where all of them reach, the line is their mean and the band from the lowest to the highest; of one it is the curve.
    """
    curves = []
    for run in runs:
        found = run.curve(name)
        if found is not None:
            x = axis(run, found[0])
            known = np.isfinite(x)
            if known.any():
                curves.append((x[known], found[1][known]))
    if not curves:
        return None
    if len(curves) == 1:
        return Line(*thinned(*curves[0]))
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    first = min(first, last)
    fullest = min(POINTS, max(len(x) for x, _ in curves))
    grid = np.linspace(first, last, max(2, fullest)) if last > first else np.array([last])
    values = np.stack([np.interp(grid, x, y) for x, y in curves])
    return Line(grid, values.mean(axis=0), values.min(axis=0), values.max(axis=0))


def thinned(x: Numbers, y: Numbers) -> Curve:
    """A curve of at most `POINTS` points, each the mean of a stretch: more would not be seen."""
    if len(x) <= POINTS:
        return x, y
    parts = np.array_split(np.arange(len(x)), POINTS)
    return np.array([x[part].mean() for part in parts]), np.array([y[part].mean() for part in parts])
