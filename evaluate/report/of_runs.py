"""Comparison of runs: runs that differ only in the seed form one row, with an interval over seeds."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import isnan, nan, sqrt
from pathlib import Path
from statistics import mean, stdev

from rich.console import Console
from rich.measure import Measurement
from rich.table import Column
from rich.table import Table as ScreenTable

from busso.base.terminal import broken
from busso.cards.duplicate import Estimate, share_text, student_95
from busso.command.settings.quoting import value_text
from busso.evaluate.report.drawing import Interval, Line, Panel, draw_panels, interval_figure, style, to_svg
from busso.evaluate.report.page import Figure, Report, Section, Text, TextTable
from busso.evaluate.report.runs import BAND, Axis, SeedGroup, band, by_decisions, by_minutes, differences
from busso.evaluate.report.training import even_of, in_words, results_section
from busso.train.run.curves import evaluation_scalar
from busso.train.run.read import SPEED, Run

Scores = dict[str, Estimate]  # share of games won by opponent, or the errors of a learned table

_MOST_PANELS, _MOST_PAIRS = 4, 21
_ALIKE = 1.05  # a larger ratio of episodes in equal time means that one of the runs was slowed down
_LEARNING = (("train/loss", "loss"), ("error/mean", "mean error"), ("error/greatest", "greatest error"))
_LESS_IS_BETTER = ("loss", "mean error", "greatest error")


def scores_of(run: Run) -> Scores:
    """Return the final results of a run; empty if it is not finished."""
    return {name: Estimate(value, value, value) for name, value in run.errors.items()} or run.against("win_rate")


def over_seeds(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and the half-width of its 95% interval over seeds, by Student's t; NaN for a single seed."""
    if len(values) < 2:
        return mean(values), nan
    return mean(values), student_95(len(values) - 1) * stdev(values) / sqrt(len(values))


@dataclass(frozen=True)
class Comparison:
    """Groups of runs, and scores by run folder; `deals` were played for them, None if they are the runs' own."""

    kinds: Sequence[SeedGroup]
    baseline: SeedGroup
    scores: Mapping[Path, Scores]
    deals: int | None = None

    @property
    def columns(self) -> list[str]:
        """All measurements of any run."""
        return list(dict.fromkeys(name for scores in self.scores.values() for name in scores))

    @cached_property
    def common(self) -> list[str]:
        """Measurements that all finished runs share; only the first error for learned tables."""
        finished = [scores for scores in self.scores.values() if scores]
        common = [name for name in self.columns if all(name in scores for scores in finished)]
        return common[:1] if any(run.errors for run in self.baseline.runs) else common

    @cached_property
    def rows(self) -> list[SeedGroup]:
        """Groups by the mean of their common measurements, best first, unfinished ones last."""
        sign = 1 if self.common and self.common[0] in _LESS_IS_BETTER else -1

        def place(kind: SeedGroup) -> float:
            found = self._means(kind)
            return sign * mean(found.values()) if found else float("inf")

        return sorted(self.kinds, key=place)

    def _means(self, kind: SeedGroup) -> dict[int, float]:
        """Return the mean over the common measurements, by seed."""
        scores = {run.settings.seed: self.scores[run.folder] for run in kind.runs}
        return {
            seed: mean(found[name].mean for name in self.common)
            for seed, found in scores.items()
            if found and self.common
        }

    def _cell(self, kind: SeedGroup, column: str) -> str:
        found = [self.scores[run.folder][column] for run in kind.runs if column in self.scores[run.folder]]
        if len(found) == 1 and found[0].low < found[0].high:
            return share_text(found[0].mean, found[0].low, found[0].high)
        return self._text(*over_seeds([each.mean for each in found])) if found else ""

    def _pairs(self, kind: SeedGroup, than: SeedGroup | None = None) -> list[float]:
        """Return each run's difference from the run of `than` or the baseline with the same seed; empty for its own."""
        than = than or self.baseline
        own, other = self._means(kind), self._means(than)
        return [own[seed] - other[seed] for seed in own if seed in other and kind is not than]

    def _figure(self) -> Iterator[Figure]:
        """Yield the difference of each pair of rows; of many rows, of each from the baseline."""
        unit = 1 if any(run.errors for run in self.baseline.runs) else 100
        pairs, found = list(combinations(self.rows, 2)), list[Interval]()
        if len(pairs) > _MOST_PAIRS:
            pairs = [(kind, self.baseline) for kind in self.rows if kind is not self.baseline]
        for one, other in pairs:
            if differences := self._pairs(one, other):
                middle, half = over_seeds(differences)
                name, text = f"{one.name} minus {other.name}", self._text(middle, half, "+")
                found.append(Interval(name, unit * middle, unit * (middle - half), unit * (middle + half), text))
        if found:
            of = self.common[0] if unit == 1 else f"percentage points of games won, mean of {', '.join(self.common)}"
            with style():
                svg = to_svg(interval_figure(found, of), "pairs")
            caption = "Differences of rows with 95% intervals over seeds; a ring is of one seed, which has none."
            yield Figure(svg, caption, caption)

    def _text(self, value: float, half: float, sign: str = "") -> str:
        if any(run.errors for run in self.baseline.runs):
            return f"{value:{sign}.6f}" + ("" if isnan(half) else f" ± {half:.6f}")
        return f"{100 * value:{sign}.1f}" + ("" if isnan(half) else f" ± {100 * half:.1f}") + (" pp" if sign else "%")

    def table(self) -> TextTable:
        """Return the table of groups, best first."""
        less = f"{' and '.join(self.common[:1]) if len(self.common) == 1 else 'mean'} minus {self.baseline.name}"
        columns = ("run", "settings", *self.columns, less, "seeds")
        rows = []
        for kind in self.rows:
            seeds = sum(bool(self.scores[run.folder]) for run in kind.runs)
            known = f"{seeds}" if seeds == len(kind.runs) else f"{seeds} of {len(kind.runs)}"
            cells = (self._cell(kind, column) for column in self.columns)
            pairs = self._pairs(kind)
            difference = self._text(*over_seeds(pairs), sign="+") if pairs else ""
            rows.append((f"`{kind.name}`", self._settings(kind), *cells, difference, known))
        return TextTable(columns, rows, left=(0, 1), marked=(self.rows.index(self.baseline),))

    def _settings(self, kind: SeedGroup) -> str:
        """Return the settings that differ from the baseline's; for the baseline, those that differ in any group."""
        others = self.kinds if kind is self.baseline else [self.baseline]
        found = {
            key: value
            for other in others
            for key, (_, value) in differences(other.settings, kind.settings).items()
            if key != "seed"
        }
        return " ".join(f"`{key}={value_text(value)}`" for key, value in found.items())

    def note(self) -> str:
        """Return the explanation below the table."""
        deals = f"{self.deals:,} duplicate deals" if self.deals else "the duplicate deals of each run"
        of_tables = any(run.errors for run in self.baseline.runs)
        what = "Errors are exact for the table that was learned" if of_tables else f"Games won on {deals}"
        text = (
            f"{what}. After ± is the 95% interval over seeds, by Student's t; in brackets, a run's own over its deals. "
            "Differences compare runs with the same seed; one is significant if its interval excludes 0."
        )
        text += "".join(f" {sentence}" for sentence in self._warnings())
        if len(self.kinds) > 2:
            text += " The best of many runs is partly luck: train it again with another seed."
        return text

    def _warnings(self) -> Iterator[str]:
        """Yield a sentence for each reason to distrust the differences."""
        if all(len(self._means(kind)) == 1 for kind in self.kinds):
            yield "One seed each: undecided."
        elif any(len(self._pairs(kind)) == 1 for kind in self.kinds):
            yield "A difference without ± is of one seed: undecided."
        finished = [run.counters for kind in self.rows for run in kind.runs if self.scores[run.folder]]
        for key, unit in (("episodes", "Episodes"), ("iteration", "Iterations")):
            done = list(dict.fromkeys(int(counters[key]) for counters in finished if key in counters))
            if done and max(done) > _ALIKE * min(done):
                first, last = done if len(done) == 2 else (min(done), max(done))
                yield f"{unit} differ: {first:,} {'and' if len(done) == 2 else 'to'} {last:,}."

    def report(self) -> Report:
        """Return the whole report."""
        runs = [run for kind in self.kinds for run in kind.runs]
        game = runs[0].game
        sections = [
            Section("Comparison", [Text(self.note()), self.table(), *self._figure()]),
            *(each for each in [results_section(runs)] if each is not None),
            *_curves(self.kinds),
            _spent(self.kinds),
        ]
        shared = f" in {len(self.kinds)} rows: runs that differ only in the seed share one"
        lead = f"{len(runs)} runs of {game}{shared if len(self.kinds) < len(runs) else ''}."
        more = f" and {len(self.kinds) - 4} more" if len(self.kinds) > 4 else ""
        return Report(f"{game}: {', '.join(kind.name for kind in self.kinds[:4])}{more}", lead, {}, sections)


def screen(comparison: Comparison, console: Console) -> ScreenTable:
    """Return the table for the terminal: with short columns, or a line for each cell, if it is too narrow."""
    found, anywhere = comparison.table(), console.options.update(width=10_000)
    rows = [[cell.replace("`", "") for cell in row] for row in found.rows]
    broken_rows = [[broken(row[0], 24), *(re.sub(r" (?=\(|\S+=)", "\n", cell) for cell in row[1:])] for row in rows]
    lines = [
        ("" if column != "settings" else name, broken(column, 24), cell)
        for name, *cells in rows
        for column, cell in zip(found.columns[1:], cells, strict=True)
    ]
    for columns, cells in (
        (found.columns, rows),
        ([broken(column, 14) for column in found.columns], broken_rows),
        (("run", "", ""), lines),
    ):
        table = ScreenTable(*(Column(column, overflow="fold") for column in columns), caption=comparison.note())
        for row in cells:
            table.add_row(*row)
        if Measurement.get(console, anywhere, table).maximum <= console.width:
            break
    return table


def csv_rows(comparison: Comparison) -> list[dict[str, object]]:
    """Return a row for each run: its scores with both ends of their intervals."""
    rows: list[dict[str, object]] = []
    for kind in comparison.rows:
        for run in kind.runs:
            rows.append({"run": run.folder, "row": kind.name, "seed": run.settings.seed})
            for name, found in comparison.scores[run.folder].items():
                rows[-1] |= {name: found.mean, f"{name} low": found.low, f"{name} high": found.high}
    return rows


def _curves(kinds: Sequence[SeedGroup]) -> Iterator[Section]:
    for name, label, axis in (("decisions", "decisions", by_decisions), ("time", "minutes of training", by_minutes)):
        panels = list(_panels(kinds, axis))
        if panels:
            svg = draw_panels(f"curves-{name}", panels, label)
            yield Section(f"Curves over {name}", [Figure(svg, f"Curves over {label}.", f"Over {label}. {BAND}")])


def _panels(kinds: Sequence[SeedGroup], axis: Axis) -> Iterator[Panel]:
    """Yield win rates against the most common opponents or, without any, losses and errors."""
    met = [name for kind in kinds for run in kind.runs for name in dict.fromkeys(run.opponents)]
    opponents = sorted(dict.fromkeys(met), key=lambda name: -met.count(name))[:_MOST_PANELS]
    shown = [(evaluation_scalar("win_rate", name), f"games won against {name}", "percent") for name in opponents]
    even = even_of(kinds[0].runs[0])
    panels = [Panel(title, _lines(kinds, name, axis), "", form, even) for name, title, form in shown]
    if not any(panel.lines for panel in panels):
        panels = [Panel(title, _lines(kinds, name, axis), "", "log") for name, title in _LEARNING]
    yield from (panel for panel in panels if panel.lines)


def _lines(kinds: Sequence[SeedGroup], name: str, axis: Axis) -> dict[str, Line]:
    found = {kind.label: band(kind.runs, name, axis) for kind in kinds}
    return {label: line for label, line in found.items() if line is not None}


def _spent(kinds: Sequence[SeedGroup]) -> Section:
    rows = []
    for kind in kinds:
        for run in kind.runs:
            speed = run.curve(SPEED)
            seconds = float(run.counters.get("seconds", 0.0))
            decisions = int(run.counters.get("env_steps", 0) or (speed[0][-1] if speed else 0))
            rate = f"{decisions / seconds:,.0f}" if seconds else ""
            state = "finished" if run.results else "not finished"
            time = in_words(seconds) if seconds else ""
            rows.append((f"`{run.name}`", str(run.settings.seed), f"{decisions:,}", time, rate, state))
    columns = ("run", "seed", "decisions", "training time", "decisions a second", "")
    return Section("Runs", [TextTable(columns, rows, left=(0, 5))])
