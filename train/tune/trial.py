"""Trials of a study in this process: each is a run, whose evaluations the pruner compares."""

import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import optuna
from optuna.exceptions import UpdateFinishedTrialError
from optuna.trial import TrialState

from busso.base.errors import EXIT_REQUEUE, UserError
from busso.base.lock import InUseError, Lock, restarts
from busso.cards.play import StoppedError
from busso.command.settings.checks import SettingsError
from busso.train.api import prepare_run, train
from busso.train.learner.learner import DivergedError
from busso.train.run import checkpoint
from busso.train.run.curves import evaluation_scalar
from busso.train.run.folder import LOCK, RunInUseError
from busso.train.run.read import objective, objective_direction, objective_meaning
from busso.train.run.signals import StopRequest
from busso.train.settings.dqn import TrainSettings
from busso.train.tune import report
from busso.train.tune.settings import Search, as_plain
from busso.train.tune.study import Study, run_of, values_of

FAILURES = 3  # consecutive failures after which the study ends
STEPS = 20  # per trial's budget


class Pruning:
    """Judge of a trial (see `busso.train.run.runner.Judge`), by Optuna's pruner.

    The pruner compares trials at the same step, a share of the budget; steps without an evaluation repeat the last
    value.
    """

    def __init__(self, trial: optuna.Trial, settings: TrainSettings) -> None:
        self.gave_up = False
        self._trial = trial
        evaluation = settings.evaluation
        what = "win_rate" if evaluation.best_measure == "win_rate" else "points"
        self._curves = [evaluation_scalar(what, name) for name in evaluation.best_against]
        before = trial.study.get_trials()[trial.number].intermediate_values  # values of earlier attempts
        self._last = max(before, default=-1)
        self.value = before.get(self._last)

    def __call__(self, share: float, scalars: Mapping[str, float]) -> bool:
        """Return whether to give up the run after an evaluation with these curves."""
        values = [scalars[name] for name in self._curves if name in scalars]
        step = int(share * STEPS)
        if not values or step <= self._last:
            return False
        for missed in range(self._last + 1, step):
            if self.value is not None:
                self._trial.report(self.value, missed)
        self._last, self.value = step, sum(values) / len(values)
        self._trial.report(self.value, step)
        self.gave_up = self._trial.should_prune()
        return self.gave_up


def run_study(search: Search) -> int:
    """Run trials until the study has enough or a signal arrives, and print it; return the exit code."""
    study = Study(search, objective_direction(search.base))
    print(f"study {search.folder}: {objective_meaning(search.base)}", file=sys.stderr)
    with StopRequest() as stop:  # also handles signals between trials
        code = _run_trials(study, stop)
    report.show(study)
    if code:
        print("stopped: the same command resumes the study", file=sys.stderr)
    return code


def _run_trials(study: Study, stop: StopRequest) -> int:
    """Run trials until there are enough or a signal arrives; return the exit code."""
    failures, begun = list[UserError](), False  # consecutive failures
    while stop.signal is None:
        try:
            trial = study.next_trial(stop.requested)
        except StoppedError:
            break
        if trial is None:
            _check(failures, most=FAILURES if study.best else 1)
            return 0
        begun = True
        try:
            if code := _run(study, trial):
                study.interrupted(trial)
                return code
            failures.clear()
        except (RunInUseError, UpdateFinishedTrialError):  # trained outside the study, or taken over
            study.interrupted(trial, busy=True)
        except DivergedError as error:  # the sampler learns from pruned trials, but not from failed ones
            study.end(trial, state=TrialState.PRUNED, why=str(error))
        except (UserError, OSError) as error:
            disk = isinstance(error.__cause__, OSError)  # is full
            # Not the trial's fault, so it is resumed.
            if isinstance(error, OSError) or disk or error.exit_code == EXIT_REQUEUE or error.key == "device":
                with suppress(OSError):
                    study.interrupted(trial)
                raise
            study.end(trial, state=TrialState.FAIL, why=str(error))
            failures.append(error)
            _check(failures, most=FAILURES)
    return stop.exit_code(again=begun or not restarts())  # else a job that is too short is requeued forever


def _check(failures: list[UserError], most: int) -> None:
    if len(failures) >= most:
        raise SettingsError("tune", f"too many trials failed, the last one: {failures[-1]}")


def _run(study: Study, trial: optuna.Trial) -> int:
    """Run a trial until it ends or a signal arrives; return the exit code. Raises UserError."""
    values = values_of(trial.params)
    chosen = study.search.trial(run_of(trial), values)
    said = " ".join(f"{key}={as_plain(key, value)}" for key, value in values.items())
    print(f"trial {run_of(trial) + 1} of {study.search.settings.trials}: {said}", file=sys.stderr)
    judge = Pruning(trial, chosen.settings) if isinstance(chosen.settings, TrainSettings) else None
    if code := train(prepare_run(chosen), judge):
        return code
    if judge is not None and judge.gave_up:
        study.end(trial, state=TrialState.PRUNED, why=f"behind the others at {judge.value:.3f}")
    else:
        study.end(trial, *objective(chosen.settings))
    clear(chosen.settings.folder)
    return 0


def clear(folder: Path) -> None:
    """Delete an ended trial's checkpoints, which may have a gigabyte each, except the best network."""
    checkpoints = folder / "checkpoints"
    if (checkpoints / checkpoint.BEST).exists():
        with suppress(InUseError), Lock(folder / LOCK):
            checkpoint.prune(checkpoints, keep=0)
