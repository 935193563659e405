"""Matplotlib figures as SVG in the fonts and colours of the surrounding page."""

import io
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from busso.base.terminal import broken

Numbers = NDArray[np.float64]

# Readable on white and near-black, and safe for colour-blind readers (after Okabe and Ito, 2008).
COLOURS = ("#3f7fc4", "#d98324", "#2f9e83", "#b566a8", "#8b939c", "#c6514a", "#8f8a2a", "#5f6fd0")
_STYLES = ("-", "--", ":", "-.")
# Ink and grid of a PNG file, and in a page, where `to_svg` replaces them, of its style.
_INK, _GRID = "#1d2329", "#e3e7eb"
_WIDTH = 7.4  # inches: the column of a page
_MOST_MARKS = 60  # points of a curve with a mark at each
_NEAR = 0.25  # of a share to that of equal players
_RC: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "busso",
    "font.family": "sans-serif",
    "font.size": 8.5,
    "axes.titlesize": 9,
    "axes.titlelocation": "left",
    "axes.edgecolor": _GRID,
    "axes.labelcolor": _INK,
    "axes.titlecolor": _INK,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": _GRID,
    "grid.linewidth": 0.8,
    "xtick.color": _INK,
    "ytick.color": _INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.color": _INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "text.parse_math": False,  # a name may contain $
}


class Line(NamedTuple):
    """Curve, with an optional band from `low` to `high`."""

    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None


class Interval(NamedTuple):
    """Estimate of an interval plot; NaN ends for an unknown interval."""

    name: str
    mean: float
    low: float
    high: float
    text: str


class Panel(NamedTuple):
    """Curves by name over one axis; `form` is percent, plain or log. Values near `even` get a line there."""

    title: str
    lines: Mapping[str, Line]
    label: str
    form: str = "plain"
    even: float | None = None


def style() -> AbstractContextManager[None]:
    """Return the context in which figures must be created and saved."""
    return mpl.rc_context(_RC)


def new_figure(height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, NDArray[Any]]:
    """Return a figure as wide as the page and its axes `[rows, columns]`; `height` is in inches."""
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def interval_figure(rows: Sequence[Interval], label: str) -> Figure:
    """Draw a row for each estimate, from the top, with its text on the right and a line at 0."""
    names = [broken(row.name, 30) for row in rows]
    figure, axes = new_figure(0.6 + len(rows) * (0.13 + 0.13 * max(name.count("\n") + 1 for name in names)))
    axis = axes[0, 0]
    axis.axvline(0, color=_INK, linewidth=0.8, linestyle=":")
    for place, row in enumerate(rows):
        inside = None if np.isfinite(row.low) else "none"
        axis.plot([row.low, row.high], [place, place], color=COLOURS[0], solid_capstyle="butt")
        axis.plot(row.mean, place, "o", color=COLOURS[0], markersize=5, markerfacecolor=inside)
        axis.text(1.02, place, row.text, transform=axis.get_yaxis_transform(), va="center")
    axis.set_yticks(range(len(rows)), names)
    axis.set_ylim(len(rows) - 0.5, -0.5)
    axis.grid(visible=False, axis="y")
    axis.set_xlabel(label)
    return figure


def png(figure: Figure) -> bytes:
    """Return the figure as a PNG file."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=160, metadata={"Software": None})
    return file.getvalue()


def to_svg(figure: Figure, name: str) -> str:
    """Return the figure as an element for an HTML page; `name` prefixes its ids, which must be unique in the page."""
    file = io.StringIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'(<svg[^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg[^>]*?) height="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    return text.replace(_INK, "currentColor").replace(_GRID, "var(--grid)").strip()


def look(number: int) -> dict[str, Any]:
    """Return colour and dashes of curve `number`; the first 32 differ."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": _STYLES[number // len(COLOURS) % len(_STYLES)]}


def draw_panels(name: str, panels: Sequence[Panel], x_label: str, columns: int = 2) -> str:
    """Draw panels with a common legend as SVG."""
    with style():
        numbers = [*range(len(panels)), *[len(panels) - 1] * (-len(panels) % columns)]  # the last fills its row
        rows = len(numbers) // columns
        figure = Figure(figsize=(_WIDTH, 0.35 + 2.15 * rows), layout="constrained")
        axes = figure.subplot_mosaic(np.reshape(numbers, (rows, columns)).tolist())
        names = list(dict.fromkeys(line for panel in panels for line in panel.lines))
        for number, panel in enumerate(panels):
            _fill(axes[number], panel, names)
            axes[number].set_xlabel(x_label)
        if len(names) > 1:
            handles = [mpl.lines.Line2D([], [], **look(number)) for number in range(len(names))]
            columns = max(1, min(len(names), 110 // (max(map(len, names)) + 8)))
            figure.legend(handles, names, loc="outside lower left", ncols=columns)
        return to_svg(figure, name)


def _fill(axis: Axes, panel: Panel, names: Sequence[str]) -> None:
    for line_name, line in panel.lines.items():
        chosen = look(names.index(line_name))
        marker = "o" if len(line.x) <= _MOST_MARKS else None
        axis.plot(line.x, line.y, marker=marker, markersize=4 if len(line.x) == 1 else 2.5, **chosen)
        if line.low is not None and line.high is not None:
            axis.fill_between(line.x, line.low, line.high, color=chosen["color"], alpha=0.18, linewidth=0)
    shares = np.concatenate([line.y for line in panel.lines.values()])
    if panel.even is not None and np.abs(shares - panel.even).min() < _NEAR:
        axis.axhline(panel.even, color=_INK, linewidth=0.8, linestyle=":")
    axis.set_title(panel.title)
    axis.set_ylabel(panel.label)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    if panel.form == "log" and _spans_much(panel):
        axis.set_yscale("log")
    elif panel.form == "percent":
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{round(100 * value, 6):g}%"))
    else:
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _spans_much(panel: Panel) -> bool:
    """Return whether all values are positive and span a factor above 30."""
    values = np.concatenate([line.y for line in panel.lines.values()])
    return bool(values.min() > 0 and values.max() > 30 * values.min())


def short(value: float) -> str:
    """Format a number as `1.5M`, `20k`, `0.25`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
