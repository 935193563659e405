"""The settings that a command line of `busso train` means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from busso.cards.base import own_files
from busso.cards.base.own_files import typed_game
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.command.settings.foreign import read_yaml
from busso.command.settings.overrides import Override, given
from busso.train.settings.batch_q import BATCH_Q_LEARNING, BatchQSettings
from busso.train.settings.dqn import OF_BOOTSTRAPPING, OF_BUSSOS_NETWORKS, LearnerSettings, TrainSettings
from busso.train.settings.run import CHECKPOINTS
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
_OF_RECIPE = (_EVALUATED, "exploration.fraction", "replay.capacity", "learner.td_lambda")  # changed since 0.3.0
_BOOTSTRAPPING = tuple(map("learner.{}".format, OF_BOOTSTRAPPING))
_NEEDED = {BEST_RESPONSE: "opponents.only", "fine_tune": "network.init_from"}  # by an experiment


@dataclass(frozen=True)
class Chosen:
    """The settings of a run, notes on them for the log, warnings, and the overrides that were `given`."""

    settings: AnyRunSettings
    notes: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    composed: Mapping[str, str] = field(default_factory=dict)  # files of `.hydra/`, by name: how Hydra composed them


def settings_of(overrides: Sequence[str]) -> AnyRunSettings:
    """The settings of a command line on any machine, by one composition. Raises SettingsError."""
    return compose(SCHEMAS, "train", overrides)


def defaults_of(settings: AnyRunSettings) -> AnyRunSettings | None:
    """What a run of this game and algorithm has if nothing is said; None for a game whose settings are not found.

    Beside a network of the user's own it has no shape.
    """
    try:
        plain = settings_of([f"game={typed_game(settings.game_name)}", f"algo={settings.algo}"])
    except SettingsError:
        return None
    if isinstance(plain, TrainSettings) and isinstance(settings, TrainSettings) and settings.network.module:
        plain = replace(plain, network=replace(plain.network, module=settings.network.module))
        plain.network.module = None
    return plain


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
    if not isinstance(settings, TrainSettings):
        return Chosen(settings, given=tuple(overrides))
    for key, code in (("network.module", settings.network.module), ("learner.loss", settings.learner.loss)):
        words = own_files.parted(code or "")
        if key in named and words and own_files.find(words[0]) is None:
            raise SettingsError(key, f"there is no file {words[0]}")
    if settings.network.module is not None and (typed := [key for key in OF_BUSSOS_NETWORKS if key in named]):
        problem = f"is for busso's own networks, not for {settings.network.module}"
        raise SettingsError(typed[0], problem, "leave it out, or leave out network=")
    settings = _measured_against_opponent(settings, named, experiment)
    return _bootstrapping_where_typed(Chosen(settings, given=tuple(overrides)), settings, named)


def _bootstrapping_where_typed(chosen: Chosen, settings: TrainSettings, named: Mapping[str, Override]) -> Chosen:
    """The same; a typed setting of bootstrapping means it, though the recipe has lambda returns.

    One of a file has no effect beside them, of which a line warns. Raises SettingsError where `learner.td_lambda` is
    typed, too, and is a number.
    """
    learner, default = settings.learner, LearnerSettings()
    if learner.td_lambda is None:
        return chosen
    typed = [key for key in _BOOTSTRAPPING if key in named]
    if typed and "learner.td_lambda" in named:
        raise SettingsError(typed[0], "has no effect where learner.td_lambda is a number", "leave one out")
    if typed:
        bootstrapping = replace(settings, learner=replace(learner, td_lambda=None))
        return replace(chosen, settings=bootstrapping, notes=(f"learner.td_lambda=null, because of {typed[0]}",))
    other = [f"learner.{key}" for key in OF_BOOTSTRAPPING if getattr(learner, key) != getattr(default, key)]
    says = f"no effect beside learner.td_lambda={learner.td_lambda}; learner.td_lambda=null bootstraps"
    return replace(chosen, warnings=(f"{', '.join(other)}: {says}",)) if other else chosen


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


def with_recipe_of_begun(chosen: Chosen) -> Chosen:
    """A run that has begun keeps what its recipe said, where versions of the recipe differ.

    Others have to be typed. Among these are the opponents of its evaluations, by which its best network was chosen, and
    `learner.td_lambda`, which is null in a run of a version without it. Raises SettingsError.
    """
    settings, typed = chosen.settings, set(given(chosen.given))
    if not isinstance(settings, TrainSettings):
        return chosen
    if typed & set(_BOOTSTRAPPING):
        typed |= {"learner.td_lambda"}
    begun = settings_of_run(settings.folder)
    for key in _OF_RECIPE:
        group, name = key.split(".")
        value = value_at(begun, key)
        if not isinstance(begun.get(group), dict) or not _is_kept(key, value) or {key, group} & typed:
            continue
        settings = replace(settings, **{group: replace(getattr(settings, group), **{name: value})})
    return replace(chosen, settings=settings)


def _is_kept(key: str, value: object) -> bool:
    """Whether a run can have had that value."""
    if key == _EVALUATED:
        return isinstance(value, list) and all(isinstance(each, str) for each in value)
    return isinstance(value, int | float) or (key == "learner.td_lambda" and value is None)


def settings_of_run(folder: Path) -> dict[str, Any]:
    """What a run that has learned something was last started with; empty if there is none, or they cannot be read."""
    path = folder / "config.yaml"
    if not (path.exists() and CHECKPOINTS.newest_first(folder / "checkpoints")):
        return {}
    try:
        stored = read_yaml(path.read_text(encoding="utf-8"))
    except ValueError:
        return {}  # those in the checkpoint are compared later
    return stored if isinstance(stored, dict) else {}
