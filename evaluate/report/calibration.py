"""Calibration: predicted values against outcomes."""

from dataclasses import dataclass
from math import isnan

import numpy as np
from numpy.typing import NDArray

from busso.cards.duplicate import student_95
from busso.cards.presentation import presentation_of
from busso.evaluate.report.drawing import COLOURS, Numbers, new_figure, style, to_svg
from busso.evaluate.report.observing import ObservedGames
from busso.evaluate.report.page import Block, Figure, Section, Text, TextTable

_BINS = 12


@dataclass(frozen=True)
class Reliability:
    """Mean value and mean outcome of decisions in equally filled bins by the value of the action taken.

    `half_width` is that of the 95% interval of the mean outcome, clustered by game because decisions of one game are
    not independent. It is NaN for a bin with decisions of a single game.
    """

    value: Numbers  # [bins]
    outcome: Numbers
    half_width: Numbers
    count: NDArray[np.int64]

    @property
    def error(self) -> float:
        """Expected calibration error (Guo et al., 2017): mean distance of the two, weighted by decisions."""
        return float(np.average(np.abs(self.value - self.outcome), weights=self.count))


def reliability(value: Numbers, outcome: Numbers, game: NDArray[np.int64], bins: int = _BINS) -> Reliability:
    """Bin decisions by value; ties may leave fewer than `bins` bins."""
    edges = np.unique(np.quantile(value, np.linspace(0, 1, bins + 1)[1:-1]))
    number = np.searchsorted(edges, value, side="right")
    found = [_bin(value[number == k], outcome[number == k], game[number == k]) for k in np.unique(number)]
    values, outcomes, halves, counts = (np.array(column) for column in zip(*found, strict=True))
    return Reliability(values, outcomes, halves, counts)


def _bin(value: Numbers, outcome: Numbers, game: NDArray[np.int64]) -> tuple[float, float, float, int]:
    mean = float(outcome.mean())
    _, row = np.unique(game, return_inverse=True)
    by_game = np.bincount(row, outcome - mean)
    games, half = by_game.size, float("nan")
    if games > 1:
        half = student_95(games - 1) * float(np.sqrt((by_game**2).sum() * games / (games - 1))) / value.size
    return float(value.mean()), mean, half, value.size


def explained(value: Numbers, outcome: Numbers) -> float:
    """Return the explained share of the variance of outcomes, 1 - var(outcome - value) / var(outcome)."""
    spread = float(outcome.var())
    return 1 - float((outcome - value).var()) / spread if spread > 0 else float("nan")


def section(watched: ObservedGames, unit: str, scale: float) -> Section | None:
    """Return the section on values, multiplied by `scale` to be in `unit`; None for a player without values."""
    rows = np.flatnonzero(watched.choices > 1)
    if watched.agent.network is None or not rows.size:
        return None
    value, outcome = watched.chosen[rows] * scale, watched.outcome[rows] * scale
    found = reliability(value, outcome, watched.game[rows])
    blocks: list[Block] = [
        Text(_says(found, value, outcome, unit, watched)),
        Figure(
            _draw(found, _by_stage(watched, rows, value, outcome), unit),
            "Left: mean outcome against mean value, in bins. Right: the share of outcomes explained, by stage.",
            "Left: mean outcome by the value of the action taken, in bins of equally many decisions, with 95% "
            "intervals over games; on the diagonal, values are right on average. Right: share of the variance of "
            "outcomes that values explain, by stage.",
        ),
        TextTable(
            ("mean value", "mean outcome", "95% interval", "decisions"),
            [
                (f"{v:+.3f}", f"{o:+.3f}", f"± {h:.3f}" if not isnan(h) else "of one game", f"{n:,}")
                for v, o, h, n in zip(found.value, found.outcome, found.half_width, found.count, strict=True)
            ],
            left=(),
        ),
    ]
    return Section("Values against outcomes", blocks)


def _says(found: Reliability, value: Numbers, outcome: Numbers, unit: str, watched: ObservedGames) -> str:
    bias = float((value - outcome).mean())
    direction = "too high" if bias > 0 else "too low"
    return (
        f"Values and outcomes are in {unit}. Over {value.size:,} decisions with a choice in {watched.games:,} games, "
        f"values are {abs(bias):.3f} {direction} on average; the mean distance from the outcome in a bin is "
        f"{found.error:.3f}. "
        f"They explain {explained(value, outcome):.0%} of the variance of outcomes."
    )


def _by_stage(watched: ObservedGames, rows: NDArray[np.int64], value: Numbers, outcome: Numbers) -> dict[str, float]:
    """Return the explained share in each stage of the game with at least 100 decisions."""
    stages, names = watched.phases[rows], presentation_of(watched.agent.game).phases
    in_stage = {name: stages == number for number, name in enumerate(names)}
    shares = {name: explained(value[here], outcome[here]) for name, here in in_stage.items() if here.sum() >= 100}
    return {name: share for name, share in shares.items() if np.isfinite(share)}


def _draw(found: Reliability, by_stage: dict[str, float], unit: str) -> str:
    with style():
        figure, axes = new_figure(3.1, 1, 2)
        left, right = axes[0]
        half = np.nan_to_num(found.half_width)
        low = float(min(found.value.min(), (found.outcome - half).min()))
        high = float(max(found.value.max(), (found.outcome + half).max()))
        left.plot([low, high], [low, high], color=COLOURS[4], linestyle="--", linewidth=1)
        left.errorbar(
            found.value, found.outcome, found.half_width, fmt="o-", markersize=3.5, capsize=2, color=COLOURS[0]
        )
        left.set_xlabel(f"value ({unit})")
        left.set_ylabel("outcome")  # the unit is on the other axis; a long one would not fit here
        left.set_title("reliability")
        names = list(by_stage)
        right.barh(range(len(names)), [max(0.0, share) for share in by_stage.values()], color=COLOURS[0], height=0.7)
        right.set_yticks(range(len(names)), names)
        right.invert_yaxis()
        right.set_xlim(0, 1)
        right.grid(visible=False, axis="y")
        right.set_title("share of the variance of outcomes explained")
        return to_svg(figure, "calibration")
