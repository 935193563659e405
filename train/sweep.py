"""`python -m train.sweep INDEX COUNT key=value,value ...`: the settings of run INDEX of a sweep, for job arrays.

One line for each setting. INDEX is from 0, COUNT must be the number of runs that the grid has.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from command.main import word_command
from command.settings.checks import SettingsError
from command.settings.compose import combinations
from command.settings.overrides import key_of, parsed

EXAMPLE = "python -m train.sweep 0 4 learner.lr=1e-3,3e-4 seed=0,1"


@dataclass(frozen=True)
class SweepRun:
    """One combination: its values of the swept keys, and the command line of `python -m train` for it."""

    values: dict[str, str]
    overrides: list[str]


def sweep_runs(overrides: Sequence[str]) -> list[SweepRun]:
    """The runs of the grid, the last key fastest, each with a name of its own: its values, after `name=` if given.

    Raises SettingsError if no key has several values, or two runs would have the same name.
    """
    grid = combinations(list(overrides))
    if not grid[0]:
        raise SettingsError("sweep", "no key has several values", "say for example learner.lr=1e-3,3e-4 seed=0,1,2,3")
    swept = {key_of(key) for key in grid[0]}
    fixed = [override for override in overrides if key_of(override) not in swept]
    name = next((parsed(override).value for override in reversed(fixed) if key_of(override) == "name"), None)
    runs = []
    for values in grid:
        named = [f"name='{_run_name(values, name)}'"] if "name" not in values else []
        runs.append(SweepRun(values, [*fixed, *(f"{key}={value}" for key, value in values.items()), *named]))
    if len({run.overrides[-1] for run in runs}) < len(runs) and "name" not in grid[0]:
        raise SettingsError("sweep", f"two of the {len(runs)} combinations have the same values")
    return runs


def _run_name(values: dict[str, str], prefix: str | None) -> str:
    """A folder that says what is special about the run: learner.lr=0.001,seed=2."""
    parts = [f"{key_of(key)}={_plain(value)}" for key, value in values.items()]
    return ",".join([_plain(prefix), *parts] if prefix else parts)


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._=,+-]+", "_", text).strip("_")


def task_of_array(index: int, count: int, overrides: Sequence[str]) -> SweepRun:
    """The run of task `index` of a job array of `count` tasks. Raises SettingsError unless the array fits the grid."""
    runs = sweep_runs(overrides)
    if not (count == len(runs) and 0 <= index < count):
        sizes = [len({run.values[key] for run in runs}) for key in runs[0].values]
        grid = " x ".join(f"{key}: {size}" for key, size in zip(runs[0].values, sizes, strict=True))
        problem = f"the grid has {prod(sizes)} combinations ({grid}), the array has {count} tasks"
        raise SettingsError("--array", problem, f"submit with --array=0-{len(runs) - 1}")
    return runs[index]


@word_command(__doc__, EXAMPLE)
def main(arguments: Sequence[str]) -> int:
    """Run the command line; returns the exit code."""
    if len(arguments) < 2 or not all(argument.isdecimal() for argument in arguments[:2]):
        raise SettingsError(
            "sweep", "INDEX or COUNT is missing", "say python -m train.sweep INDEX COUNT key=value,value ..."
        )
    index, count, *overrides = arguments
    for override in overrides:
        if "\n" in override:  # each line would be an override of its own
            raise SettingsError(key_of(override), "has a line break, which the lines of this list cannot hold")
    print("\n".join(task_of_array(int(index), int(count), overrides).overrides))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
