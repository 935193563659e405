"""One trial: a run, its evaluations for the pruner, and its result."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import optuna

from command.lock.lock import InUseError, Lock
from train.api import train
from train.run.checkpoint import checkpoint, pruning
from train.run.folder import LOCK
from train.run.metrics.scalars import evaluation_scalar
from train.run.read import Run
from train.settings.dqn import TrainSettings
from train.settings.resolve import AnyRunSettings, Chosen
from train.settings.tabular import TabularSettings
from train.tune.study import reported

STEPS = 20  # into which the budget of a trial is divided


class Pruning:
    """The judge of a trial, see `train.run.runner.Judge`: whether the pruner gives it up.

    The pruner compares trials at the same step, a share of the budget. Steps that passed without an evaluation have
    the value of the one before.
    """

    def __init__(self, trial: optuna.Trial, settings: TrainSettings) -> None:
        self.gave_up = False
        self._trial = trial
        evaluation = settings.evaluation
        what = "win_rate" if evaluation.best_measure == "win_rate" else "points"
        self._curves = [evaluation_scalar(what, name) for name in evaluation.best_against]
        before = reported(trial)  # by an earlier start
        self._last = max(before, default=-1)
        self._value = before.get(self._last)

    def __call__(self, share: float, scalars: Mapping[str, float]) -> bool:
        """Whether to give the run up after an evaluation with these curves."""
        values = [scalars[name] for name in self._curves if name in scalars]
        step = int(share * STEPS)
        if not values or step <= self._last:
            return False
        for missed in range(self._last + 1, step):
            if self._value is not None:
                self._trial.report(self._value, missed)
        self._last, self._value = step, sum(values) / len(values)
        self._trial.report(self._value, step)
        self.gave_up = self._trial.should_prune()
        return self.gave_up


def run(trial: optuna.Trial, chosen: Chosen) -> tuple[int, bool]:
    """Run or resume the trial: the exit code, and whether it was given up. Raises UserError."""
    settings = chosen.settings
    pruning = Pruning(trial, settings) if isinstance(settings, TrainSettings) else None
    code = train(chosen, pruning)
    return code, pruning is not None and pruning.gave_up


def clear(folder: Path) -> None:
    """Keep of a trial that has ended the best network and the curves: its replay buffer alone may have a gigabyte."""
    checkpoints = folder / "checkpoints"
    if (checkpoints / checkpoint.BEST).exists():
        with suppress(InUseError), Lock(folder / LOCK):
            pruning.prune(checkpoints, keep=0)


def direction(settings: AnyRunSettings) -> str:
    """Whether more of the objective is better."""
    return "minimize" if isinstance(settings, TabularSettings) else "maximize"


def meaning(settings: AnyRunSettings) -> str:
    """What the objective is, for a reader."""
    if isinstance(settings, TabularSettings):
        return "loss against optimal play"
    what, against = _measured(settings)
    unit = "games won" if what == "win_rate" else f"{what} more a game"
    return f"{unit} against {', '.join(against)}"


def result(settings: AnyRunSettings) -> tuple[float, float | None]:
    """The objective of a complete run and the half-width of its 95% interval, from results.json.

    The best network on fresh deals, by `evaluation.best_metric`; of a table of a small game its loss, which is exact.
    """
    run = Run(settings.folder, settings)
    found = run.required_results()
    if isinstance(settings, TabularSettings):
        return float(found["loss"]), None
    what, against = _measured(settings)
    estimates = [run.against(what)[name] for name in against]
    # Duels on the same deals are not independent: the mean of the half-widths is on the safe side.
    count = len(estimates)
    return sum(each.mean for each in estimates) / count, sum((each.high - each.low) / 2 for each in estimates) / count


def _measured(settings: AnyRunSettings) -> tuple[str, list[str]]:
    assert not isinstance(settings, TabularSettings)
    if not isinstance(settings, TrainSettings):
        return "win_rate", list(settings.evaluation.opponents)
    evaluation = settings.evaluation
    what = "win_rate" if evaluation.best_measure == "win_rate" else settings.load_game().unit
    return what, evaluation.best_against
