"""The keys that `python -m train.tune` searches, and the settings of every trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cards.base.bounds import bounded
from command.settings.checks import SettingsError, check_numbers, check_one_of, require
from command.settings.compose import compose, search_space
from command.settings.foreign import check_values
from command.settings.old_keys import refusal
from command.settings.overrides import key_of
from command.space import Dimension
from train.settings.dqn import TrainSettings
from train.settings.resolve import AnyRunSettings, Chosen, resolve
from train.settings.run import is_run_name

MINUTES = 3.0  # of a trial where no budget is named
EVALUATIONS = 10  # of a trial, for the pruner to see
DEALS = 256  # of each

_TAKEN = ("name",)  # settings of training that follow from the study
# Trials that differ in these have results that cannot be compared.
_NOT_SEARCHED = ("algo", "game", "runs", "opponents.only")
_NOT_SEARCHED_GROUPS = ("game.", "evaluation.")
_SEARCHED_ALL_THE_SAME = "game.reward"  # which learning alone knows of
MAX_TRIALS = 100_000


@dataclass
class TuneSettings:
    """The settings of `python -m train.tune` that are its own; conf/tune.yaml explains them."""

    study: str = "tune"
    trials: int = bounded(20, 1, MAX_TRIALS)
    pruner: str = "median"
    startup: int = bounded(5, 0, MAX_TRIALS)
    space: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_numbers("", self)
        require(is_run_name(self.study), "study", "a folder of letters, digits and -_=,.", self.study)
        check_one_of("pruner", self.pruner, "median", "none")


OWN = tuple(TuneSettings.__dataclass_fields__)


@dataclass(frozen=True)
class Search:
    """What is searched: `dimensions` by key, and what every trial has, as overrides of `python -m train`."""

    settings: TuneSettings
    dimensions: dict[str, Dimension]
    fixed: list[str]
    chosen: Chosen  # with these and no others

    @property
    def base(self) -> AnyRunSettings:
        """The settings of a trial without what is searched."""
        return self.chosen.settings

    @property
    def folder(self) -> Path:
        """The folder of the study: runs/<game>/<study>."""
        return Path(self.base.runs) / self.base.game_name / self.settings.study

    def trial(self, number: int, values: Mapping[str, str]) -> Chosen:
        """The settings of a trial with these values, as they may be typed. Raises SettingsError if they do not go.

        The values come out of the study's journal, which may be another's.
        """
        check_values(dict(values))
        for key in values:
            require(key in self.dimensions, key, "a key that is searched", key)
        given = [*self.fixed, *(f"{key}={value}" for key, value in values.items())]
        return resolve([*given, f"name='{self.settings.study}/trial-{number:03d}'"])


def search_of(overrides: Sequence[str]) -> Search:
    """What a command line of `python -m train.tune` means. Raises SettingsError."""
    own = [each for each in overrides if key_of(each) in OWN]
    rest = [each for each in overrides if key_of(each) not in OWN]
    for override in rest:
        if key_of(override) in _TAKEN:
            raise SettingsError(key_of(override), "follows from study=", "leave it out")
    settings = compose(TuneSettings, "tune", own)
    dimensions = search_space(rest)
    searched = {key_of(each) for each in dimensions}
    given = [each for each in rest if key_of(each) not in searched]
    named = f"name='{settings.study}'"
    chosen = resolve([*given, named])
    if not dimensions:
        if not isinstance(chosen.settings, TrainSettings):
            key = "step_size" if hasattr(chosen.settings, "step_size") else "seed"
            hint = f"say what to search of {chosen.settings.algo}, for example {key}=0.1,0.3"
            raise SettingsError("space", "is for algo=dqn", hint)
        # What the command line fixes is not searched.
        fixed = {key_of(each) for each in given}
        dimensions = search_space([f"{key}={text}" for key, text in settings.space.items() if key not in fixed])
    for key in map(key_of, dimensions):
        if old := refusal(key):
            raise old
        if key in _NOT_SEARCHED or (key.startswith(_NOT_SEARCHED_GROUPS) and key != _SEARCHED_ALL_THE_SAME):
            raise SettingsError(
                key, "decides how trials are measured, so it is the same for all", "use one study=... for each value"
            )
    require(bool(dimensions), "space", "something to search, as learner.lr=1e-3,3e-4", settings.space)
    given = [*_budget(given, chosen.settings), *given]
    return Search(settings, dimensions, given, resolve([*given, named]))


def _budget(given: Sequence[str], settings: AnyRunSettings) -> list[str]:
    """A budget where none is named, and evaluations in step with it where the command line does not say when."""
    if not isinstance(settings, TrainSettings):
        return []
    keys = {key_of(each) for each in given}
    minutes = settings.minutes or (MINUTES if settings.episodes is None else None)
    budget = [f"minutes={minutes}"] if settings.names_no_budget else []
    by_games = settings.episodes is not None
    every = max(1, settings.episodes // EVALUATIONS) if settings.episodes is not None else 1
    seconds = 0.0 if by_games or minutes is None else 60 * minutes / EVALUATIONS
    wanted = {"every_episodes": every, "min_seconds": seconds, "deals": DEALS}
    return budget + [f"evaluation.{key}={value}" for key, value in wanted.items() if f"evaluation.{key}" not in keys]
