"""The drawings of reports: matplotlib figures as SVG, with the fonts and colours of the page around them."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter
from numpy.typing import NDArray

Numbers = NDArray[np.float64]

# Readable on white and on near-black; told apart by who sees no red or green (after Okabe and Ito, 2008).
COLOURS = ("#3f7fc4", "#d98324", "#2f9e83", "#b566a8", "#8b939c", "#c6514a", "#8f8a2a", "#5f6fd0")
_STYLES = ("-", "--", ":", "-.")
# What the page puts its own colours in place of.
_INK, _GRID = "#010203", "#040506"
_WIDTH = 7.4  # inches, of a page's column
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
    "text.parse_math": False,  # a name may have two $
}


class Line(NamedTuple):
    """A curve, and the band around it from `low` to `high` where there is one."""

    x: Numbers
    y: Numbers
    low: Numbers | None = None
    high: Numbers | None = None


class Panel(NamedTuple):
    """Curves by name over the same axis; `form` is percent, plain or log."""

    title: str
    lines: Mapping[str, Line]
    label: str
    form: str = "plain"


def style() -> AbstractContextManager[None]:
    """The look of all drawings; figures are made and saved within it."""
    return mpl.rc_context(_RC)


def new_figure(height: float, rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, NDArray[Any]]:
    """A figure as wide as the page with its axes, `[rows, columns]`; heights are in inches."""
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **options)


def to_svg(figure: Figure, name: str) -> str:
    """The figure as an element for an HTML page; `name` keeps its parts apart from those of other figures."""
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
    """Colour and dashes of the curve with this number; the first 32 differ."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": _STYLES[number // len(COLOURS) % len(_STYLES)]}


def draw_panels(name: str, panels: Sequence[Panel], x_label: str, columns: int = 2) -> str:
    """Curves in small panels with one legend for all, as SVG."""
    with style():
        rows = -(-len(panels) // columns)
        figure, axes = new_figure(0.35 + 2.15 * rows, rows, columns)
        names = list(dict.fromkeys(line for panel in panels for line in panel.lines))
        for axis, panel in zip(axes.flat, panels, strict=False):
            _fill(axis, panel, names)
            axis.set_xlabel(x_label)
        for axis in axes.flat[len(panels) :]:
            axis.set_axis_off()
        if len(names) > 1:
            _legend(figure, axes.flat[0], names)
        return to_svg(figure, name)


def _fill(axis: Axes, panel: Panel, names: Sequence[str]) -> None:
    for line_name, line in panel.lines.items():
        chosen = look(names.index(line_name))
        alone = len(line.x) == 1
        axis.plot(line.x, line.y, marker="o" if alone else None, markersize=4, **chosen)
        if line.low is not None and line.high is not None:
            axis.fill_between(line.x, line.low, line.high, color=chosen["color"], alpha=0.18, linewidth=0)
    axis.set_title(panel.title)
    axis.set_ylabel(panel.label)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    if panel.form == "log" and _spans_much(panel):
        axis.set_yscale("log")
    elif panel.form == "percent":
        axis.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    else:
        axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _spans_much(panel: Panel) -> bool:
    """Return whether the values are all positive and differ so much that a logarithmic axis is clearer."""
    values = np.concatenate([line.y for line in panel.lines.values()])
    return bool(values.min() > 0 and values.max() > 30 * values.min())


def _legend(figure: Figure, axis: Axes, names: Sequence[str]) -> None:
    handles = [mpl.lines.Line2D([], [], **look(number)) for number in range(len(names))]
    longest = max(map(len, names))
    columns = max(1, min(len(names), 110 // (longest + 8)))
    figure.legend(handles, names, loc="outside lower left", ncols=columns)


def short(value: float) -> str:
    """`1.5M`, `20k`, `0.25`."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"
