"""The figures of the study of Corellian Spike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch
from numpy.typing import NDArray

from evaluate.report.drawing import COLOURS, look, new_figure, short, style, to_svg

# The decisions and which actions belong to each.
DECISIONS = (("betting", (0, 1, 2)), ("buying", (3, 4)), ("exchange", (5, 6, 7, 8)))
_COLOURS = (*COLOURS, "#c9ced3")


def draw_actions(name: str, iterations: Sequence[int], counts: NDArray[np.int64], actions: Sequence[str]) -> str:
    """Stacked bars of the share of each action, by round and decision and for each of `iterations`, as SVG.

    `counts` are decisions taken, `[iterations, rounds, actions]`.
    """
    with style():
        figure, axes = new_figure(6.6, 4, 3, sharex=True, sharey=True)
        for number in range(4):
            for column, (decision, its) in enumerate(DECISIONS):
                axis = axes[number][column]
                if number == 0 and column > 0:  # nothing is bought there
                    axis.set_axis_off()
                    continue
                axis.set_title(f"round {number}, {decision}")
                _stack(axis, iterations, counts[:, number, list(its)], [_COLOURS[action] for action in its])
                if column == 0:
                    axis.set_ylabel("share")
                if number == 3:
                    axis.set_xlabel("iteration")
        figure.legend([Patch(color=colour) for colour in _COLOURS], actions, ncols=3, loc="outside lower left")
        return to_svg(figure, name)


def _stack(axis: Axes, iterations: Sequence[int], counts: NDArray[np.int64], colours: Sequence[str]) -> None:
    """One bar for each iteration, empty where nothing was decided."""
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    bottom = np.zeros(len(iterations))
    for share, colour in zip(shares.T, colours, strict=True):
        axis.bar(list(iterations), share, width=4, bottom=bottom, color=colour)
        bottom += share
    axis.set_ylim(0, 1)


def draw_unvisited(name: str, curves: Mapping[str, Sequence[int]]) -> str:
    """How many states no game has reached yet, by iteration; one curve for each run, as SVG."""
    with style():
        figure, axes = new_figure(3.2)
        axis = axes[0, 0]
        experiments = list(dict.fromkeys(run.removesuffix("_no_fold") for run in curves))
        for run, curve in curves.items():
            colour = look(experiments.index(run.removesuffix("_no_fold")))["color"]
            dashes = "--" if run.endswith("_no_fold") else "-"
            axis.plot(range(1, len(curve) + 1), curve, dashes, color=colour, label=run)
        axis.set_xlabel("iteration")
        axis.set_ylabel("states never visited")
        axis.set_ylim(bottom=0)
        axis.yaxis.set_major_formatter(lambda value, _: short(value))
        figure.legend(loc="outside lower left", ncols=2)
        return to_svg(figure, name)
