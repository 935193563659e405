"""`python -m evaluate.sweep learner.lr=1e-3,3e-4 seed=0,1`: the results of the runs of a sweep, as a table."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from train.checks import SettingsError
from train.command_line import run_command
from train.config import TrainSettings, compose
from train.progress import result_console
from train.sweep import SweepRun, sweep_runs

SORT = "--sort="


@dataclass(frozen=True)
class Row:
    """One run: its values of the swept keys, how far it came, and its results by column, if it is finished."""

    values: dict[str, str]
    folder: Path
    state: str
    results: dict[str, float] = field(default_factory=dict)


def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    return run_command(_main, arguments)


def _main(arguments: Sequence[str]) -> int:
    overrides = [argument for argument in arguments if not argument.startswith(SORT)]
    sort = next((argument.removeprefix(SORT) for argument in arguments if argument.startswith(SORT)), None)
    runs = sweep_runs(overrides)
    settings = [compose(TrainSettings, "train", run.overrides) for run in runs]
    rows = sort_rows([read_row(run, each.folder) for run, each in zip(runs, settings, strict=True)], sort)
    folder = Path(settings[0].runs) / "sweeps"
    path = folder / ",".join([settings[0].game_name, *_prefix(overrides), *rows[0].values])
    folder.mkdir(parents=True, exist_ok=True)
    cells = _cells(rows)
    _write_csv(path.with_name(path.name + ".csv"), rows)
    path.with_name(path.name + ".md").write_text(_markdown(cells))
    result_console().print(_table(cells))
    Console(stderr=True).print(f"written to {path}.md and .csv", highlight=False)
    return 0


def _prefix(overrides: Sequence[str]) -> list[str]:
    names = (override.removeprefix("name=") for override in overrides if override.startswith("name="))
    return [name for name in names if "," not in name]


def read_row(run: SweepRun, folder: Path) -> Row:
    """What the folder of a run says of it. A damaged file of results counts as not finished."""
    try:
        results = json.loads((folder / "results.json").read_text())
        columns = {
            f"{opponent} {what}": float(result[what][0])
            for opponent, result in results.items()
            for what in result
            if what != "deals"
        }
        return Row(run.values, folder, "finished", columns)
    except FileNotFoundError:
        return Row(run.values, folder, _progress(folder))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return Row(run.values, folder, "results.json is damaged")


def _progress(folder: Path) -> str:
    try:
        with (folder / "metrics.csv").open(newline="") as file:
            episodes = [float(row["rollout/episodes"]) for row in csv.DictReader(file) if row.get("rollout/episodes")]
    except (OSError, ValueError, csv.Error):
        return "not started"
    return f"{int(max(episodes, default=0)):,} episodes"


def sort_rows(rows: Sequence[Row], column: str | None) -> list[Row]:
    """Best first by a column of results, the first if none is named; runs without results come last."""
    columns = _result_columns(rows)
    if column is not None and column not in columns:
        raise SettingsError(f"--sort: no column {column!r}; there are {', '.join(columns) or 'none yet'}")
    by = column or next(iter(columns), None)
    return sorted(rows, key=lambda row: -row.results.get(by, float("-inf")) if by else 0.0)


def _result_columns(rows: Sequence[Row]) -> list[str]:
    return list(dict.fromkeys(column for row in rows for column in row.results))


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    """The header and the rows as text."""
    columns = _result_columns(rows)
    table = [[*rows[0].values, *columns, "state"]]
    for row in rows:
        numbers = [_number(column, row.results.get(column)) for column in columns]
        table.append([*row.values.values(), *numbers, row.state])
    return table


def _number(column: str, value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.1%}" if column.endswith("win_rate") else f"{value:+.2f}"


def _markdown(cells: Sequence[Sequence[str]]) -> str:
    header, *rows = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in cells]
    return "\n".join([header, "|" + " --- |" * len(cells[0]), *rows]) + "\n"


def _table(cells: Sequence[Sequence[str]]) -> Table:
    table = Table(title=f"{len(cells) - 1} runs, best first; of each the mean on duplicate deals")
    for name in cells[0]:
        table.add_column(name, overflow="fold")
    for row in cells[1:]:
        table.add_row(*row)
    return table


def _write_csv(path: Path, rows: Sequence[Row]) -> None:
    records: list[dict[str, Any]] = [
        {**row.values, **row.results, "state": row.state, "folder": str(row.folder)} for row in rows
    ]
    with path.open("w", newline="") as file:
        columns = [*rows[0].values, *_result_columns(rows), "state", "folder"]
        writer = csv.DictWriter(file, columns, restval="")
        writer.writeheader()
        writer.writerows(records)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
