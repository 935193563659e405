"""Curves of strength over time: when they reach a level, in a table and a picture."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from matplotlib.ticker import FuncFormatter, PercentFormatter

from busso.cards.duplicate import NORMAL_95
from busso.evaluate.report.drawing import look, new_figure, png, style
from tests.bench.strength.peers import DEALS

LEVELS = {"random": (0.75, 0.80, 0.85, 0.875), "greedy": (0.50, 0.60, 0.65, 0.70)}
NEVER = "not reached"


@dataclass(frozen=True)
class Point:
    """An evaluation: hands won against each opponent, and the seconds since the start of the command."""

    cpu: float
    wall: float
    won: dict[str, float]


@dataclass(frozen=True)
class Curve:
    """Learning curve of a side; `cpu` and `wall` are its total seconds, `evaluating` CPU seconds if known."""

    name: str
    command: str
    points: list[Point]
    cpu: float
    wall: float
    evaluating: float | None = None

    def reached(self, opponent: str, level: float) -> Point | None:
        """Return the first evaluation at `level`, unless the next one falls below it: a single one may be luck."""
        shares = [point.won[opponent] for point in self.points]
        for point, share, following in zip(self.points, shares, [*shares[1:], 1.0], strict=True):
            if share >= level and following >= level:
                return point
        return None


def to_json(curves: Sequence[Curve], about: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data to keep of a measurement; `about` describes the method."""
    return {**about, "curves": [asdict(curve) for curve in curves]}


def of_json(kept: Mapping[str, Any]) -> list[Curve]:
    """Read the curves of `to_json`."""
    curves = [dict(each) for each in kept["curves"]]
    return [Curve(**(each | {"points": [Point(**point) for point in each["points"]]})) for each in curves]


def table(curves: Sequence[Curve]) -> Iterator[str]:
    """Yield a Markdown table of CPU and wall-clock seconds of each side to each level."""
    yield f"| hands won against | {' | '.join(curve.name for curve in curves)} |"
    yield "|---" * (1 + len(curves)) + "|"
    for opponent, levels in LEVELS.items():
        for level in levels:
            cells = [_seconds(curve.reached(opponent, level)) for curve in curves]
            yield f"| `{opponent}` {100 * level:g}% | {' | '.join(cells)} |"
    yield f"| whole run | {' | '.join(f'{curve.cpu:,.0f} / {curve.wall:,.0f}' for curve in curves)} |"
    best = [", ".join(f"{max(_shares(curve, name), default=0):.1%}" for name in LEVELS) for curve in curves]
    yield f"| best against {' and '.join(f'`{name}`' for name in LEVELS)} | {' | '.join(best)} |"


def _seconds(point: Point | None) -> str:
    return NEVER if point is None else f"{point.cpu:,.0f} / {point.wall:,.0f}"


def _shares(curve: Curve, opponent: str) -> list[float]:
    return [point.won[opponent] for point in curve.points]


def half_width(share: float) -> float:
    """Return the most that the half-width of a 95% interval can be: a deal has one result from 0 to 1."""
    return NORMAL_95 * (share * (1 - share) / DEALS) ** 0.5


def draw(curves: Sequence[Curve], out: Path) -> None:
    """Draw a panel for each opponent: hands won over CPU seconds, on a logarithmic axis, in the style of reports."""
    with style():
        figure, axes = new_figure(3.3, 1, len(LEVELS))
        for axis, (opponent, levels) in zip(axes.flat, LEVELS.items(), strict=True):
            for number, curve in enumerate(curves):
                seconds, shares = [point.cpu for point in curve.points], _shares(curve, opponent)
                axis.plot(seconds, shares, label=curve.name, **look(number))
                low, high = ([share + side * half_width(share) for share in shares] for side in (-1, 1))
                axis.fill_between(seconds, low, high, color=look(number)["color"], alpha=0.18, linewidth=0)
            for level in levels:
                axis.axhline(level, color="#8b939c", linewidth=0.8, linestyle=":")
                axis.text(1.01, level, f"{100 * level:g}%", transform=axis.get_yaxis_transform(), va="center", size=7)
            axis.set(title=f"hands won against {opponent}", xlabel="CPU seconds from the command", xscale="log")
            axis.xaxis.set_major_formatter(FuncFormatter(lambda seconds, _: f"{seconds:g}"))
            axis.yaxis.set_major_formatter(PercentFormatter(1.0, 0))
            axis.grid(visible=False, axis="y")
        handles, names = axes.flat[0].get_legend_handles_labels()
        bands = f"bands: 95% intervals over {DEALS:,} deals, at their widest; dotted: levels of the table"
        figure.legend(handles, names, loc="outside lower left", ncols=len(curves), title=bands, alignment="left")
        out.write_bytes(png(figure))
