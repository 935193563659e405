"""Objective by which hyperparameter searches compare runs."""

from typing import Any, Literal

from busso.command.settings.checks import SettingsError
from busso.train.run.read import Run
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import AnyRunSettings
from busso.train.settings.tabular import TabularSettings

Direction = Literal["minimize", "maximize"]


def direction(settings: AnyRunSettings) -> Direction:
    """Return whether the objective is to be minimized or maximized."""
    return "minimize" if isinstance(settings, TabularSettings) else "maximize"


def check_direction(settings: AnyRunSettings, said: Any) -> None:
    """Raise SettingsError for a sweeper with the wrong direction; Optuna's minimizes by default."""
    said, wanted = getattr(said, "name", said), direction(settings)
    if said in ("minimize", "maximize") and said != wanted:
        problem = f"it is {said}, but the objective is {meaning(settings)}"
        raise SettingsError("hydra.sweeper.direction", problem, f"use hydra.sweeper.direction={wanted}")


def meaning(settings: AnyRunSettings) -> str:
    """Describe the objective for a reader."""
    if isinstance(settings, TabularSettings):
        return "loss against optimal play"
    what, against = _measured(settings)
    unit = "games won" if what == "win_rate" else f"{what} more a game"
    return f"{unit} against {', '.join(against)}"


def result(settings: AnyRunSettings) -> tuple[float, float | None]:
    """Return the objective of a complete run and the half-width of its 95% interval, from results.json.

    It is the best network's `evaluation.best_metric` on fresh deals, or the exact loss of a small game's table.
    """
    run = Run(settings.folder, settings)
    found = run.required_results()
    if isinstance(settings, TabularSettings):
        return float(found["loss"]), None
    what, against = _measured(settings)
    estimates = [run.against(what)[name] for name in against]
    # Duels on the same deals are not independent, so the mean of the half-widths is an upper bound.
    count = len(estimates)
    return sum(each.mean for each in estimates) / count, sum((each.high - each.low) / 2 for each in estimates) / count


def _measured(settings: AnyRunSettings) -> tuple[str, list[str]]:
    assert not isinstance(settings, TabularSettings)
    if not isinstance(settings, TrainSettings):
        return "win_rate", list(settings.evaluation.opponents)
    evaluation = settings.evaluation
    what = "win_rate" if evaluation.best_measure == "win_rate" else settings.load_game().unit
    return what, evaluation.best_against
