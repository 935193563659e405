"""`python -m evaluate.sweep learner.lr=1e-3,3e-4 seed=0,1`: the results of the runs of a sweep, as a table.

Runs of any algorithm: a run that played duplicate deals at its end has games won and results against each opponent, a
table of a small game its errors, which are exact. --sort=COLUMN sorts by another column than the first.
"""

from __future__ import annotations

import csv
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cards.matches.duplicate import Estimate, decimals, share_text
from command.main import word_command
from command.settings.checks import SettingsError
from command.terminal.console import plain_console, result_console
from train.run.results import INTERVAL, read_results
from train.settings.resolve import AnyRunSettings, settings_of
from train.settings.tabular import TabularSettings
from train.sweep import SweepRun, sweep_runs

if TYPE_CHECKING:
    from rich.table import Table

EXAMPLE = "python -m evaluate.sweep learner.lr=1e-3,3e-4 seed=0,1 --sort='greedy win_rate'"
SORT = "--sort="
# Of a learned table, by the name in results.json. The first sorts; `states` only says of how many the errors are.
ERRORS = {
    "loss": "loss",
    "optimal_share": "optimal share",
    "mean": "mean error",
    "greatest": "greatest error",
    "states": "states",
}
LESS_IS_BETTER = ("loss", "mean error", "greatest error")


@dataclass(frozen=True)
class Row:
    """One run: its values of the swept keys, how far it came, and its results by column, if it is finished."""

    values: dict[str, str]
    folder: Path
    state: str
    results: dict[str, Estimate] = field(default_factory=dict)


@word_command(__doc__, EXAMPLE)
def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    overrides = [argument for argument in arguments if not argument.startswith(SORT)]
    sort = next((argument.removeprefix(SORT) for argument in arguments if argument.startswith(SORT)), None)
    runs = sweep_runs(overrides)
    settings = [settings_of(run.overrides) for run in runs]
    rows = [read_row(run, each) for run, each in zip(runs, settings, strict=True)]
    by = _sort_column(rows, sort)
    rows = sort_rows(rows, by)
    folder = Path(settings[0].runs) / "sweeps"
    path = folder / ",".join([settings[0].game_name, *_prefix(overrides), *rows[0].values])
    folder.mkdir(parents=True, exist_ok=True)
    cells, notes = _cells(rows), _notes(rows, by)
    _write_csv(path.with_name(path.name + ".csv"), rows)
    path.with_name(path.name + ".md").write_text(_markdown(cells) + "".join(f"\n{note}\n" for note in notes))
    result_console().print(_table(cells))
    for note in notes:
        result_console().print(note, highlight=False)
    plain_console(stderr=True).print(f"written to {path}.md and .csv", highlight=False)
    return 0


def _prefix(overrides: Sequence[str]) -> list[str]:
    names = (override.removeprefix("name=") for override in overrides if override.startswith("name="))
    return [name for name in names if "," not in name]


# ---------------------------------------------------------------------- reading


def read_row(run: SweepRun, settings: AnyRunSettings) -> Row:
    """What the folder of a run says of it. A damaged file of results counts as not finished."""
    folder = settings.folder
    try:
        results = read_results(folder)
        if results is None:
            return Row(run.values, folder, _progress(folder))
        columns = _errors(results) if isinstance(settings, TabularSettings) else _against(results)
        return Row(run.values, folder, "finished", columns)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return Row(run.values, folder, "results.json is damaged")


def _errors(results: Mapping[str, Any]) -> dict[str, Estimate]:
    """Errors of a table against the exact values; they are of the table that was learned, so nothing is uncertain."""
    found = {column: float(results[name]) for name, column in ERRORS.items()}
    return {column: Estimate(value, value, value) for column, value in found.items() if math.isfinite(value)}


def _against(results: Mapping[str, Any]) -> dict[str, Estimate]:
    """Each mean over duplicate deals with its 95% interval, by opponent and what was measured."""
    columns = {}
    for opponent, result in results.items():
        for what in result:
            if what == "deals" or what.endswith(INTERVAL):
                continue
            mean, half = (float(number) for number in result[what])
            low, high = result.get(what + INTERVAL, (mean - half, mean + half))
            columns[f"{opponent} {what}"] = Estimate(mean, float(low), float(high))
    return columns


def _progress(folder: Path) -> str:
    unit, done = "not started", -1
    try:
        with (folder / "metrics.csv").open(newline="") as file:
            for row in csv.DictReader(file):
                for name in ("episodes", "iteration"):
                    if text := row.get(f"rollout/{name}"):
                        unit, done = name.rstrip("s") + "s", max(done, int(float(text)))
    except (OSError, ValueError, csv.Error):
        return "not started"
    return f"{done:,} {unit}" if done >= 0 else "0 episodes"


# ---------------------------------------------------------------------- what is best


def _sort_column(rows: Sequence[Row], column: str | None) -> str | None:
    """The column to sort by: the one named, else the first. Raises SettingsError for one that is not there."""
    columns = _result_columns(rows)
    if column is not None and column not in columns:
        raise SettingsError("--sort", f"no column {column!r}", f"there are {', '.join(columns) or 'none yet'}")
    return column or next(iter(columns), None)


def sort_rows(rows: Sequence[Row], by: str | None) -> list[Row]:
    """Best first by a column of results; runs without it come last."""
    sign = 1 if by in LESS_IS_BETTER else -1

    def place(row: Row) -> float:
        return sign * row.results[by].mean if by in row.results else math.inf

    return sorted(rows, key=place)


def equals_of_the_best(rows: Sequence[Row], by: str) -> int:
    """How many of the sorted rows have an interval that overlaps with that of the first, which is one of them."""
    found = [row.results[by] for row in rows if by in row.results]
    return sum(each.low <= found[0].high and found[0].low <= each.high for each in found)


def _notes(rows: Sequence[Row], by: str | None) -> list[str]:
    """What one should know before choosing the first row."""
    if by is None:
        return []
    finished = sum(by in row.results for row in rows)
    errors = by in ERRORS.values()
    if errors:
        notes = [f"Best first by {by}. Errors are exact for the table that was learned; another seed learns another."]
    else:
        notes = [f"Best first by {by}; in brackets and after ± are 95% intervals over deals."]
        equals = equals_of_the_best(rows, by)
        if equals > 1:
            notes.append(f"Intervals that overlap with that of the first: {equals - 1}. These deals do not part them.")
    if finished > 1:
        again = "" if errors else "measure it again on other deals (evaluate.tournament) or "
        notes.append(f"The first of {finished} is flattered by luck: to be sure, {again}train it with another seed.")
    return notes


# ---------------------------------------------------------------------- writing


def _result_columns(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row.results))


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    """The header and the rows as text."""
    columns = _result_columns(rows)
    table = [[*rows[0].values, *columns, "state"]]
    for row in rows:
        numbers = [_text(column, row.results[column]) if column in row.results else "" for column in columns]
        table.append([*row.values.values(), *numbers, row.state])
    return table


def _text(column: str, value: Estimate) -> str:
    if column.endswith(" win_rate"):
        return share_text(value.mean, value.low, value.high)
    if column == ERRORS["optimal_share"]:
        return f"{value.mean:.2%}"
    if column in ERRORS.values():
        return f"{value.mean:,.0f}" if column == "states" else f"{value.mean:.6f}"
    places = decimals(value.half_width)
    return f"{value.mean:+.{places}f} ± {value.half_width:.{places}f}"


def _markdown(cells: Sequence[Sequence[str]]) -> str:
    header, *rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    return "\n".join([header, "|" + " --- |" * len(cells[0]), *rows]) + "\n"


def _table(cells: Sequence[Sequence[str]]) -> Table:
    from rich.table import Table

    table = Table(title=f"{len(cells) - 1} runs")
    for name in cells[0]:
        table.add_column(name, overflow="fold")
    for row in cells[1:]:
        table.add_row(*row)
    return table


def _write_csv(path: Path, rows: Sequence[Row]) -> None:
    """One row a run; of what has an interval also both its ends."""
    records: list[dict[str, Any]] = []
    for row in rows:
        numbers: dict[str, Any] = {}
        for column, value in row.results.items():
            numbers[column] = value.mean
            if value.low < value.high:
                numbers |= {f"{column} low": value.low, f"{column} high": value.high}
        records.append({**row.values, **numbers, "state": row.state, "folder": str(row.folder)})
    last = ("state", "folder")
    results = [column for column in dict.fromkeys(name for record in records for name in record) if column not in last]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*results, *last], restval="")
        writer.writeheader()
        writer.writerows(records)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
