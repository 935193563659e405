"""`python -m train --multirun key=a,b`: train a grid of runs, on this machine or each as a task of a job array."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from math import prod

from cards.base.bounds import bounded
from command.child import child_command
from command.errors import UserError
from command.lock.owner import restarts
from command.main import failure_of
from command.settings.as_hydra import PLAIN_LAUNCHER
from command.settings.checks import MAX_THREADS, SettingsError, check_numbers, check_one_of
from command.settings.compose import combinations, compose
from command.settings.overrides import key_of, parsed
from train.run.folder import RunInUseError
from train.run.signals import EXIT_REQUEUE, StopRequest
from train.settings.resolve import Chosen, resolve

Train = Callable[[Chosen], int]
ROW, ALL = "row", "all"
_OWN = ("jobs", "task", "common", "rows")  # keys of conf/multirun.yaml, with `row`
_LAUNCHERS = ("hydra/launcher=", "hydra.launcher.")
_LOOK_SECONDS = 0.2  # between two looks at the other processes
_TASK = re.compile(r"(\d+)/(\d+)")


@dataclass
class MultirunSettings:
    """The settings of `python -m train --multirun` that are its own; conf/multirun.yaml explains them."""

    row: str | None = None  # taken out of the command line before: it may have several values
    jobs: int = bounded(1, 1, MAX_THREADS)
    task: str | None = None
    common: list[str] = field(default_factory=list)
    rows: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_numbers("", self)
        if self.task is not None and not _TASK.fullmatch(self.task):
            raise SettingsError("task", f"NUMBER/COUNT, as 0/8, not {self.task!r}")


@dataclass(frozen=True)
class GridRun:
    """One combination: its values of the swept keys, and the command line of `python -m train` for it."""

    values: dict[str, str]
    overrides: list[str]


@dataclass(frozen=True)
class Grid:
    """All combinations, the last key fastest, and how to run them."""

    settings: MultirunSettings
    runs: list[GridRun]

    def task(self) -> GridRun | None:
        """The run of the task of a job array; None where all are to be run. Raises SettingsError if they do not fit."""
        if (said := self.settings.task) is None:
            return None
        index, count = (int(number) for number in said.split("/"))
        if count != len(self.runs) or index >= count:
            sizes = {key: len({run.values[key] for run in self.runs}) for key in self.runs[0].values}
            grid = " x ".join(f"{key}: {size}" for key, size in sizes.items())
            problem = f"the grid has {prod(sizes.values())} combinations ({grid}), the array has {count} tasks"
            raise SettingsError("--array", problem, f"submit with --array=0-{len(self.runs) - 1}")
        return self.runs[index]


def grid_of(overrides: Sequence[str]) -> Grid:
    """The runs that a command line means, each with a name of its own: its values, after `name=` if given.

    A value of `row` stands for the settings of that row. Raises SettingsError if two runs would have the same name.
    """
    own = [each for each in overrides if key_of(each).partition(".")[0] in _OWN]
    settings = compose(MultirunSettings, "multirun", own)
    given = [each for each in overrides if each not in own]
    given = [f"{ROW}={','.join(settings.rows)}" if each == f"{ROW}={ALL}" else each for each in given]
    swept = combinations(given)
    keys = {ROW, *map(key_of, swept[0])}
    fixed = [each for each in given if key_of(each) not in keys]
    row = next((parsed(each).value for each in given if key_of(each) == ROW and ROW not in swept[0]), None)
    runs = [_run(settings, fixed, {ROW: row, **values} if row else values) for values in swept]
    if len({tuple(run.values.values()) for run in runs}) < len(runs):
        raise SettingsError("--multirun", f"two of the {len(runs)} combinations have the same values")
    return Grid(settings, runs)


def _run(settings: MultirunSettings, fixed: list[str], values: dict[str, str]) -> GridRun:
    overrides = [*fixed, *(f"{key}={value}" for key, value in values.items() if key != ROW)]
    if ROW in values:
        check_one_of(ROW, values[ROW], *settings.rows)
        given = {key_of(each) for each in overrides}
        common = [each for each in settings.common if key_of(each) not in given]
        overrides = [*common, *fixed, *settings.rows[values[ROW]], *overrides[len(fixed) :]]
    if values and "name" not in values:
        prefix = next((parsed(each).value for each in reversed(fixed) if key_of(each) == "name"), None)
        overrides.append(f"name='{_name(values, prefix)}'")
    return GridRun(values, overrides)


def _name(values: dict[str, str], prefix: str | None) -> str:
    """A folder that says what is special about the run: learner.lr=0.001,seed=2."""
    parts = [value if key == ROW else f"{key_of(key)}={_plain(value)}" for key, value in values.items()]
    return ",".join([_plain(prefix), *parts] if prefix else parts)


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._=,+-]+", "_", text).strip("_")


# ---------------------------------------------------------------------- running them


def multirun(overrides: Sequence[str], train: Train) -> int:
    """Train or resume every combination; returns the exit code, that of the first run that a signal ends.

    All are composed, and so checked, before the first one starts. A run that another process has is left to it: the
    same command twice shares the work. If one fails the others are run all the same: a line at the end names it, and
    the exit code is its own, or 75 if another start may help one of them. Raises SettingsError.
    """
    given = [each for each in overrides if each != PLAIN_LAUNCHER]
    _refuse_launcher(given)
    grid = grid_of(given)
    if (task := grid.task()) is not None:
        return train(resolve(task.overrides))
    runs = [(_said(run), resolve(run.overrides)) for run in grid.runs]
    with StopRequest() as stop, _helpers(given, grid.settings.jobs - 1) as helpers:  # a signal counts between two runs
        rounds = _Rounds(train, stop)
        code = rounds.run(runs)
        if code is None and rounds.left and helpers:
            while stop.signal is None and any(helper.poll() is None for helper in helpers):
                time.sleep(_LOOK_SECONDS)
            code = rounds.run(rounds.left)
    return code if code is not None else rounds.sum_up(given, len(runs))


def _said(run: GridRun) -> str:
    return " ".join(f"{key}={value}" for key, value in run.values.items())


@contextmanager
def _helpers(given: Sequence[str], count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """`count` other processes take part in the grid, silently; they end with this one, each with a checkpoint."""
    command = child_command("train", ["--multirun", *given, "jobs=1"])
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    nowhere = subprocess.DEVNULL
    processes = [subprocess.Popen(command, env=environment, stdout=nowhere, stderr=nowhere) for _ in range(count)]
    try:
        yield processes
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


class _Rounds:
    """Runs one after another. `left` are those that other processes have; `failed` are exit codes by run."""

    def __init__(self, train: Train, stop: StopRequest) -> None:
        self._train, self._stop = train, stop
        self.left: list[tuple[str, Chosen]] = []
        self.failed: dict[str, int] = {}

    def run(self, runs: Sequence[tuple[str, Chosen]]) -> int | None:
        """Train each; returns the exit code if a signal ends it, else None."""
        self.left = []
        for number, (said, chosen) in enumerate(runs, 1):
            if self._stop.signal is not None:
                # Else a job that is too short is requeued for ever.
                return self._stop.exit_code(again=number > 1 or not restarts())
            print(f"run {number} of {len(runs)}: {said}", file=sys.stderr)
            try:
                code = self._train(chosen)
            except RunInUseError as error:
                if self._stop.signal is not None:
                    return self._stop.exit_code(again=True)  # it ended the waiting
                self.left.append((said, chosen))
                print(f"another process trains this run: {error}", file=sys.stderr)
            except (UserError, OSError, MemoryError) as error:
                if isinstance(error, UserError) and error.key == "device":
                    raise  # of this machine, for all runs
                message, self.failed[said or chosen.settings.name] = failure_of(error)
                print(f"error: {message}", file=sys.stderr)
            else:
                if code:
                    return code
        return None

    def sum_up(self, given: Sequence[str], count: int) -> int:
        """Say how many are complete, which have failed, and what shows them; returns the exit code."""
        if self.left or self.failed:
            complete = count - len(self.left) - len(self.failed)
            print(f"{complete} of {count} runs are complete; {len(self.left)} are of another process", file=sys.stderr)
        if self.failed:
            print(f"failed: {'; '.join(self.failed)}", file=sys.stderr)
        if count > 1:
            print(f"the table: python -m evaluate.compare --multirun {shlex.join(given)}", file=sys.stderr)
        codes = self.failed.values()
        return EXIT_REQUEUE if EXIT_REQUEUE in codes else max(codes, default=0)


def _refuse_launcher(overrides: Sequence[str]) -> None:
    """Other launchers of Hydra are not used: jobs are submitted by busso's own script, whose command is named."""
    others = [each for each in overrides if each.startswith(_LAUNCHERS)]
    if not others:
        return
    rest = [each for each in overrides if each not in others]
    count = len(grid_of(rest).runs)
    script = f"sbatch --array=0-{count - 1} slurm/sweep.sh {shlex.join(rest)}"
    here = f"on this machine python -m train --multirun {shlex.join(rest)}"
    raise SettingsError(key_of(others[0]), f"the command for Slurm is {script}", here)
