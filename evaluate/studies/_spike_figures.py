"""The figures of the study of Corellian Spike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

# The decisions and which actions belong to each.
DECISIONS = (("betting", (0, 1, 2)), ("buying", (3, 4)), ("exchange", (5, 6, 7, 8)))
_COLOURS = ("#c0392b", "#2e86c1", "#4d5656", "#27ae60", "#b7c7c0", "#a6acaf", "#8e44ad", "#e67e22", "#f4d03f")


def draw_actions(
    path: Path, title: str, iterations: Sequence[int], counts: NDArray[np.int64], names: Sequence[str]
) -> None:
    """Stacked bars of the share of each action, by round and decision and for each of `iterations`.

    `counts` are decisions taken, `[iterations, rounds, actions]`.
    """
    figure = Figure(figsize=(12, 9), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(f"{title}: actions in self-play after each saved iteration")
    axes = figure.subplots(4, 3, squeeze=False, sharex=True, sharey=True)
    for number in range(4):
        for column, (decision, actions) in enumerate(DECISIONS):
            axis = axes[number][column]
            if number == 0 and column > 0:
                axis.set_axis_off()
                continue
            axis.set_title(f"round {number}, {decision}", fontsize=10)
            _stack(axis, iterations, counts[:, number, list(actions)], [_COLOURS[action] for action in actions])
            if column == 0:
                axis.set_ylabel("share of decisions")
            if number == 3:
                axis.set_xlabel("iteration")
    # The two places of round 0 where nothing is bought are room for the legend.
    legend = axes[0][1].legend(
        [Patch(color=colour) for colour in _COLOURS],
        names,
        ncols=2,
        loc="center left",
        bbox_to_anchor=(0.25, 0.5),
        title="actions, from below",
    )
    legend.set_in_layout(False)
    figure.savefig(path, dpi=110)


def _stack(axis: Axes, iterations: Sequence[int], counts: NDArray[np.int64], colours: Sequence[str]) -> None:
    """One bar for each iteration, empty where nothing was decided."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    bottom = np.zeros(len(iterations))
    for share, colour in zip(shares.T, colours, strict=True):
        axis.bar(list(iterations), share, width=4, bottom=bottom, color=colour)
        bottom += share
    axis.set_ylim(0, 1)


def draw_unvisited(path: Path, curves: Mapping[str, Sequence[int]]) -> None:
    """How many states no game has reached yet, by iteration; one curve for each run."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axis = figure.subplots()
    experiments = list(dict.fromkeys(name.removesuffix("_no_fold") for name in curves))
    for name, curve in curves.items():
        style = "--" if name.endswith("_no_fold") else "-"
        colour = f"C{experiments.index(name.removesuffix('_no_fold'))}"
        axis.plot(range(1, len(curve) + 1), curve, style, color=colour, label=name)
    axis.set_xlabel("iteration")
    axis.set_ylabel("states never visited")
    axis.set_ylim(bottom=0)
    axis.yaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axis.legend()
    axis.grid(alpha=0.3)
    figure.savefig(path, dpi=110)
