"""`python -m train --multirun key=a,b`: the runs of a grid, one after another in this process."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Sequence

from command.errors import UserError
from command.lock.owner import restarts
from command.main import failure_of
from command.settings.as_hydra import PLAIN_LAUNCHER
from command.settings.checks import SettingsError
from command.settings.compose import combinations
from command.settings.overrides import key_of
from train.run.device import this_machine
from train.run.folder import RunInUseError
from train.run.signals import EXIT_REQUEUE, StopRequest
from train.settings.resolve import Chosen, resolve
from train.sweep import SweepRun, sweep_runs

_LAUNCHER = "hydra/launcher="
_OF_LAUNCHER = "hydra.launcher."


def multirun(overrides: Sequence[str], train: Callable[[Chosen], int]) -> int:
    """Train or resume every combination; returns the exit code, that of the first run that a signal ends.

    All are composed, and so checked, before the first one starts. A run that another process has is left to it: the
    same command twice shares the work. One that fails does not keep the others from being run: a line at the end names
    it, and the exit code is its own, or 75 if another start may help one of them. Raises SettingsError.
    """
    given = [each for each in overrides if each != PLAIN_LAUNCHER]
    _refuse_launcher(given)
    runs = sweep_runs(given) if combinations(given)[0] else [SweepRun({}, given)]
    chosen = [resolve(run.overrides, this_machine()) for run in runs]
    with StopRequest() as stop:  # also between two runs
        return _run_all(given, runs, chosen, train, stop)


def _run_all(
    given: Sequence[str],
    runs: Sequence[SweepRun],
    chosen: Sequence[Chosen],
    train: Callable[[Chosen], int],
    stop: StopRequest,
) -> int:
    left, failed = 0, dict[str, int]()  # exit codes by what says which run it is
    for number, (run, each) in enumerate(zip(runs, chosen, strict=True), 1):
        if stop.signal is not None:
            return stop.exit_code(again=number > 1 or not restarts())  # else too short a job is requeued for ever
        said = " ".join(f"{key}={value}" for key, value in run.values.items())
        print(f"run {number} of {len(runs)}: {said}", file=sys.stderr)
        try:
            code = train(each)
        except RunInUseError as error:
            if stop.signal is not None:
                return stop.exit_code(again=True)  # it ended the waiting
            left += 1
            print(f"left to the other process: {error}", file=sys.stderr)
        except (UserError, OSError, MemoryError) as error:
            message, failed[said or each.settings.name] = failure_of(error)
            print(f"error: {message}", file=sys.stderr)
        else:
            if code:
                return code
    _sum_up(given, len(runs), left, list(failed))
    codes = failed.values()
    return EXIT_REQUEUE if EXIT_REQUEUE in codes else max(codes, default=0)


def _sum_up(given: Sequence[str], count: int, left: int, failed: Sequence[str]) -> None:
    if left or failed:
        print(
            f"{count - left - len(failed)} of {count} runs are complete; {left} are of another process",
            file=sys.stderr,
        )
    if failed:
        print(f"failed: {'; '.join(failed)}", file=sys.stderr)
    if count > 1:
        print(f"the table: python -m evaluate.sweep {shlex.join(given)}", file=sys.stderr)


def _refuse_launcher(overrides: Sequence[str]) -> None:
    """Other launchers of Hydra are not used: jobs are submitted by busso's own script, whose command is named."""
    others = [each for each in overrides if each.startswith((_LAUNCHER, _OF_LAUNCHER))]
    if not others:
        return
    rest = [each for each in overrides if each not in others]
    count = len(combinations(rest))
    script = f"sbatch --array=0-{count - 1} slurm/sweep.sh {shlex.join(rest)}"
    here = f"on this machine python -m train --multirun {shlex.join(rest)}"
    raise SettingsError(key_of(others[0]), f"as jobs of Slurm the same is {script}", here)
