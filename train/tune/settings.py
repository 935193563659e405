"""Search space of `busso tune`, in the syntax of Hydra's sweepers, and the settings of each trial."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import IntervalSweep
from omegaconf import DictConfig, OmegaConf

from busso.base.bounds import Bounds
from busso.command.settings.checks import SettingsError, check_numbers, check_one_of, require
from busso.command.settings.compose import from_config, refused_by_name
from busso.command.settings.quoting import in_quotes, key_of, value_text, with_escapes
from busso.command.settings.untrusted import check_values
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.resolve import SCHEMAS, AnyRunSettings, ResolvedSettings, chosen_of, resolve
from busso.train.settings.run import is_run_name

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

MINUTES = 3.0  # per trial without a budget
EVALUATIONS = 10  # per trial, for the pruner
DEALS = 256  # per evaluation

_PARAMS = "hydra.sweeper.params"
# Trials that differ in these keys are not comparable.
_NOT_SEARCHED = ("algo", "runs", "opponents.only", "game", "evaluation.")
_SEARCHED_ALL_THE_SAME = "game.reward"  # affects learning only
MAX_TRIALS = 100_000


@dataclass
class TuneSettings:
    """Settings of `busso tune` itself; conf/tune.yaml explains them."""

    study: str
    trials: Annotated[int, Bounds(1, MAX_TRIALS)]
    pruner: str
    startup: Annotated[int, Bounds(0, MAX_TRIALS)]

    def __post_init__(self) -> None:
        check_numbers("", self)
        require(is_run_name(self.study), "study", "a folder of letters, digits and -_=,.", self.study)
        check_one_of("pruner", self.pruner, "median", "none")


OWN = tuple(TuneSettings.__dataclass_fields__)


@dataclass(frozen=True)
class Search:
    """Search space: `dimensions` by key, and the `busso train` overrides that all trials share."""

    settings: TuneSettings
    dimensions: dict[str, BaseDistribution]
    fixed: list[str]
    base: AnyRunSettings  # settings with the fixed overrides only

    @property
    def folder(self) -> Path:
        """Study folder: runs/<game>/<study>."""
        return Path(self.base.runs) / self.base.game_name / self.settings.study

    def trial(self, number: int, values: Mapping[str, str]) -> ResolvedSettings:
        """Return the settings of a trial with these values in Hydra's syntax. Raises SettingsError if they are invalid.

        The values come from the study's journal, which another user may have written.
        """
        check_values(dict(values))
        for key in values:
            require(key in self.dimensions, key, "a key that is searched", key)
        given = [*self.fixed, *(f"{key}={value}" for key, value in values.items())]
        return resolve([*given, f"name='{self.settings.study}/trial-{number:03d}'"])


@cache
def as_plain(key: str, text: str) -> str:
    """Return a value without the backslashes and quotes of Hydra's grammar."""
    return value_text(value_of(key, text))


def value_of(key: str, text: str) -> Any:
    """Parse a value as Hydra does."""
    return OverridesParser.create().parse_override(f"{key}={text}").value()


def as_params(overrides: Sequence[str]) -> list[str]:
    """Return the overrides, with swept ones moved to `hydra.sweeper.params`. Raises SettingsError."""
    with refused_by_name(overrides, "tune"):
        parsed = OverridesParser.create().parse_overrides(list(overrides))
    typed = list(zip(parsed, overrides, strict=True))
    swept = {each.get_key_element(): text.partition("=")[2] for each, text in typed if each.is_sweep_override()}
    params = ",".join(f"{key}:{in_quotes(text)}" for key, text in swept.items())
    rest = [text for each, text in typed if each.get_key_element() not in swept]
    return [*rest, f"++{_PARAMS}={{{params}}}"] if swept else rest


def search_of(config: DictConfig, params: Mapping[str, object], typed: Sequence[str]) -> Search:
    """Return the search over the keys in `hydra.sweeper.params` that were not typed. Raises SettingsError."""
    given = [each for each in typed if key_of(each) not in (*OWN, _PARAMS)]
    keys = {key_of(each) for each in given}
    if "name" in keys:
        raise SettingsError("name", "follows from study=", "leave it out")
    settings = from_config(TuneSettings, OmegaConf.masked_copy(config, list(OWN)))
    run = OmegaConf.masked_copy(config, [str(key) for key in config if key not in (*OWN, "hydra")])
    dimensions = {key: _dimension(key, str(text)) for key, text in params.items() if key not in keys}
    if not dimensions:
        raise SettingsError("search", "nothing is searched", "use +search=dqn, or values as learner.lr=1e-3,3e-4")
    fixed = [*_budget(keys, chosen_of(from_config(SCHEMAS, run), given).settings), *given]
    return Search(settings, dimensions, fixed, resolve([*fixed, f"name='{settings.study}'"]).settings)


def _dimension(key: str, text: str) -> BaseDistribution:
    """Parse the values of a key, such as `1,2,4` or `tag(log,interval(1e-4,1e-2))`. Raises SettingsError."""
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    name = key_of(key)
    if name.startswith(_NOT_SEARCHED) and name != _SEARCHED_ALL_THE_SAME:
        problem = "decides how trials are measured, so it is the same for all"
        raise SettingsError(name, problem, "use one study=... for each value")
    override = with_escapes(f"{key}={text}")
    with refused_by_name([override]):
        found = OverridesParser.create().parse_override(override)
        sweep = found.value()
        try:
            if isinstance(sweep, IntervalSweep):
                low, high, log = sweep.start, sweep.end, "log" in sweep.tags
                if isinstance(low, int) and isinstance(high, int):
                    return IntDistribution(low, high, log=log)
                return FloatDistribution(low, high, log=log)  # type: ignore[arg-type] # both are set
            require(found.is_sweep_override(), name, "several values or an interval", text)
            return CategoricalDistribution(list(found.sweep_string_iterator()))
        except ValueError as error:  # Optuna's, such as for an empty interval
            raise SettingsError.of(error, name) from None


def _budget(keys: set[str], settings: AnyRunSettings) -> list[str]:
    """Return overrides for a default budget and evaluations evenly spaced over it, except for typed `keys`."""
    if not isinstance(settings, TrainSettings):
        return []
    budget = [f"minutes={MINUTES}"] if settings.names_no_budget else []
    every, seconds = 1, 60 * (settings.minutes or MINUTES) / EVALUATIONS
    if settings.episodes is not None:
        every, seconds = max(1, settings.episodes // EVALUATIONS), 0.0
    wanted = {"every_episodes": every, "min_seconds": seconds, "max_seconds": seconds, "deals": DEALS}
    return budget + [f"evaluation.{key}={value}" for key, value in wanted.items() if f"evaluation.{key}" not in keys]
