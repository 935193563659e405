"""The results of a run as a picture: games won against each opponent, evaluation by evaluation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from cards.base.errors import InputError
from train.run.metrics.curves import read
from train.run.metrics.scalars import evaluation_scalar

ROWS = 12  # evaluations at most, evenly over the run


def drawn(run: Path, final: Mapping[str, float]) -> NDArray[np.uint8]:
    """Pixels `[height, width, 3]` of the games won in evaluations of metrics.csv, and at the end on fresh deals."""
    rows = [*_evaluations(run, list(final)), ("best, fresh deals", list(final.values()))]
    figure = Figure(figsize=(2.4 + 1.3 * len(final), 1.3 + 0.36 * len(rows)), dpi=100, layout="constrained")
    canvas, axes = FigureCanvasAgg(figure), figure.add_subplot()
    values = np.array([row[1] for row in rows], np.float64)
    axes.imshow(values, vmin=0, vmax=1, cmap="RdYlGn", aspect="auto")
    axes.set_xticks(range(len(final)), list(final), rotation=20, ha="right")
    axes.set_yticks(range(len(rows)), [row[0] for row in rows])
    axes.set_title("games won against")
    for (y, x), value in np.ndenumerate(values):
        if np.isfinite(value):
            axes.text(x, y, f"{value:.1%}", ha="center", va="center")
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()  # type: ignore[no-untyped-call]


def _evaluations(run: Path, opponents: list[str]) -> list[tuple[str, list[float]]]:
    """The decisions before each evaluation, as text, and the games won against each opponent; NaN where unknown."""
    try:
        curves = read(run)
    except (OSError, InputError):
        return []
    found: dict[float, list[float]] = {}
    for column, opponent in enumerate(opponents):
        for step, won in zip(*curves.get(evaluation_scalar("win_rate", opponent), ([], [])), strict=True):
            found.setdefault(step, [math.nan] * len(opponents))[column] = won
    steps = sorted(found)
    chosen = [steps[k] for k in np.unique(np.linspace(0, len(steps) - 1, ROWS).round().astype(int))] if steps else []
    return [(f"{step:,.0f} decisions", found[step]) for step in chosen]
