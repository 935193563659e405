"""Several runs of the bench, each in a process of its own, and the spread of what they measure."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from rich.table import Table

from command.terminal.console import result_console
from tests.bench import figures
from tests.bench.figures import Figure

BENCH = ["-m", "tests.bench"]


def repeat(names: Sequence[str], command: str, runs: int, commit: bool, busy: bool) -> int:
    """Measure `runs` times, print the table, and with `commit` write what `command` brought after every run.

    The order goes through all figures before the next run, so that a slow hour of the machine shows as spread. What a
    run cannot measure is said, and the others count. Returns 1 then.
    """
    load = figures.load()
    if commit and not figures.is_quiet() and not busy:
        print(
            f"error: {load:.1f} processes want to run for each CPU, and figures taken beside them are none to keep: "
            "wait until the machine is quiet, or say --busy",
            file=sys.stderr,
        )
        return 2
    lines: list[dict[str, Any]] = []
    code, found = 0, []
    for run in range(runs):
        print(f"run {run + 1} of {runs}", file=sys.stderr, flush=True)
        measured = _Run(names)
        lines += list(measured.lines())
        code = max(code, min(1, measured.code))
        found = figures.summed_up(lines, command, load)
        if commit:
            figures.commit(found)
    result_console().print(table(found))
    return code


class _Run:
    """One run in a new process: Numba compiles anew, memory lies elsewhere. `code` is its exit code in the end."""

    def __init__(self, names: Sequence[str]) -> None:
        self._command = [sys.executable, *BENCH, *names]
        self.code = 0

    def lines(self) -> Iterator[dict[str, Any]]:
        """The figures as they come; whatever else it prints goes where ours goes."""
        with subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for text in process.stdout:
                print(text, end="", flush=True)
                if text.startswith('{"figure"'):
                    yield json.loads(text)
        self.code = process.returncode


def table(found: Sequence[Figure]) -> Table:
    """Median and spread of each figure, and the target where there is one."""
    shown = Table("figure", "unit", "median", "min", "max", "runs", "to reach", title=f"on {figures.machine()}")
    for each in found:
        target = "" if each.target is None else f"{each.direction} {each.target:g}"
        spread = (f"{value:.4g}" for value in (each.median, each.least, each.most))
        shown.add_row(each.figure, each.unit, *spread, str(each.runs), target)
    return shown
