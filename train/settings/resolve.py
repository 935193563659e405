"""The settings that a command line of `busso train` means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.command.settings.foreign import read_yaml
from busso.command.settings.old_keys import upgraded
from busso.command.settings.overrides import Override, given
from busso.train.settings.batch_q import BATCH_Q_LEARNING, BatchQSettings
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.saved import value_at
from busso.train.settings.tabular import ALGORITHMS, TabularSettings

AnyRunSettings = TrainSettings | BatchQSettings | TabularSettings
SCHEMAS: dict[str, type[AnyRunSettings]] = {
    "dqn": TrainSettings,
    BATCH_Q_LEARNING: BatchQSettings,
    **dict.fromkeys(ALGORITHMS, TabularSettings),
}
BEST_RESPONSE = "best_response"  # conf/experiment/best_response.yaml
_EVALUATED = "evaluation.opponents"
_OF_BOOTSTRAPPING = ("n_step", "double", "watkins_cut", "target_tau", "target_update_interval")  # of the learner
_NEEDED = {BEST_RESPONSE: "opponents.only", "fine_tune": "network.init_from"}  # by an experiment


@dataclass(frozen=True)
class Chosen:
    """The settings of a run, notes on them for the log, and the overrides that were `given`."""

    settings: AnyRunSettings
    notes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    composed: Mapping[str, str] = field(default_factory=dict)  # files of `.hydra/`, by name: how Hydra composed them


def settings_of(overrides: Sequence[str]) -> AnyRunSettings:
    """The settings of a command line on any machine, by one composition. Raises SettingsError."""
    return compose(SCHEMAS, "train", overrides)


def resolve(overrides: Sequence[str]) -> Chosen:
    """The settings of a command line of `busso train`. Raises SettingsError."""
    return chosen_of(settings_of(overrides), overrides)


def chosen_of(settings: AnyRunSettings, overrides: Sequence[str]) -> Chosen:
    """The settings with what follows from the `overrides` that were typed. Raises SettingsError."""
    named = given(overrides)
    experiment = named["experiment"].value if "experiment" in named else None
    if "dir" in named:
        raise SettingsError("dir", "follows from the folder that Hydra makes", "say hydra.run.dir=FOLDER")
    if (key := _NEEDED.get(experiment or "")) and key not in named:
        raise SettingsError(key, f"experiment={experiment} needs it", f"say {key}=...")
    if isinstance(settings, TrainSettings):
        settings = _bootstrapping_where_typed(settings, named)
        settings = _measured_against_opponent(settings, named, experiment)
    return Chosen(settings, given=tuple(overrides))


def _bootstrapping_where_typed(settings: TrainSettings, named: Mapping[str, Override]) -> TrainSettings:
    """The settings; a typed setting of bootstrapping means it, though the recipe has lambda returns.

    Raises SettingsError where `learner.td_lambda` is typed, too, and is a number.
    """
    typed = [key for key in map("learner.{}".format, _OF_BOOTSTRAPPING) if key in named]
    if not typed or settings.learner.td_lambda is None:
        return settings
    if "learner.td_lambda" in named:
        raise SettingsError(typed[0], "has no effect where learner.td_lambda is a number", "leave one out")
    return replace(settings, learner=replace(settings.learner, td_lambda=None))


def _measured_against_opponent(
    settings: TrainSettings, named: Mapping[str, Override], experiment: str | None
) -> TrainSettings:
    """The settings; those of a run that learns against one player measure it by what it wins of that player.

    Another experiment or the command line may say otherwise. Raises SettingsError for `opponents.phases` besides.
    """
    only = settings.opponents.only
    if only is None:
        return settings
    if any(key.startswith("opponents.phases") for key in named):
        other = f"opponents.only={only}, which sits in all seats of the other sides"
        raise SettingsError("opponents.phases", f"names the opponents, and so does {other}", "leave one out")
    if _EVALUATED in named or experiment not in (None, BEST_RESPONSE):
        return settings
    best_metric = settings.evaluation.best_metric if "evaluation.best_metric" in named else "result"
    return replace(settings, evaluation=replace(settings.evaluation, opponents=[only], best_metric=best_metric))


def with_opponents_of_begun(chosen: Chosen) -> Chosen:
    """A run that has begun keeps the opponents of its evaluations, by which its best network was chosen.

    Others have to be typed: what a recipe names changes with the version. Raises SettingsError.
    """
    settings = chosen.settings
    if not isinstance(settings, TrainSettings) or _EVALUATED in given(chosen.given):
        return chosen
    begun = value_at(settings_of_run(settings.folder), _EVALUATED)
    if not isinstance(begun, list) or not all(isinstance(each, str) for each in begun):
        return chosen
    return replace(chosen, settings=replace(settings, evaluation=replace(settings.evaluation, opponents=begun)))


def settings_of_run(folder: Path) -> dict[str, Any]:
    """What a run that has learned something was last started with; empty if there is none, or they cannot be read."""
    path = folder / "config.yaml"
    if not (path.exists() and any((folder / "checkpoints").glob("episode_*.pt"))):
        return {}
    try:
        stored = read_yaml(path.read_text())
    except ValueError:
        return {}  # those in the checkpoint are compared later
    return upgraded(stored) if isinstance(stored, dict) else {}
