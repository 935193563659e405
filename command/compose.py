"""Settings: dataclasses, composed by Hydra from conf/ and checked once, here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise, product
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from cards.game import Game
from command.checks import SettingsError, not_negative, one_of, positive, require
from train.run.resources import job_minutes
from train.settings.run import RunSettings
from train.settings.dqn import (
    CheckpointSettings,
    EvaluationSettings,
    ExplorationSettings,
    LearnerSettings,
    NetworkSettings,
    PhaseSettings,
    ReplaySettings,
    RolloutSettings,
)

if TYPE_CHECKING:
    from omegaconf import DictConfig

CONF = Path(__file__).resolve().parent.parent / "conf"
DEFAULT_MINUTES = 9.0  # of a run whose budget nobody says
T = TypeVar("T")


@dataclass
class TrainSettings(RunSettings):
    """Everything that `python -m train` may be told; conf/ holds the same keys with their comments."""

    algo: str = "dqn"
    episodes: int | None = None
    minutes: float | None = None
    device: str = "auto"
    log_every_episodes: int = 10_000
    log_min_seconds: float = 2.0
    network: NetworkSettings = field(default_factory=NetworkSettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    exploration: ExplorationSettings = field(default_factory=ExplorationSettings)
    behaviour: list[PhaseSettings] = field(default_factory=list)
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("algo", self.algo, "dqn")
        if self.episodes is None and self.minutes is None:
            self.minutes = job_minutes() or DEFAULT_MINUTES
        require(self.episodes is None or self.episodes > 0, "episodes", "more than 0, or null", self.episodes)
        require(self.minutes is None or self.minutes > 0, "minutes", "more than 0, or null", self.minutes)
        positive("", self, "log_every_episodes")
        not_negative("", self, "log_min_seconds")
        game = self.load_game()
        self._check_behaviour(game)
        for opponent in self.evaluation.opponents:
            _check_player(game, "evaluation.opponents", opponent)

    def _check_behaviour(self, game: Game) -> None:
        require(bool(self.behaviour), "behaviour", "at least one phase", self.behaviour)
        ends = [math.inf if phase.until is None else phase.until for phase in self.behaviour]
        rising = all(a < b for a, b in pairwise(ends)) and ends[0] > 0 and ends[-1] == math.inf
        require(rising, "behaviour", "phases by rising `until`, the last with until: null", ends)
        last = max((phase.until for phase in self.behaviour if phase.until is not None), default=0)
        fits = last == 0 or (self.episodes is not None and last < self.episodes)
        require(fits, "behaviour", f"phases within the budget: say episodes=N, more than {last}", self.episodes)
        for phase in self.behaviour:
            fits = all(p >= 0 for p in phase.mix.values()) and math.isclose(sum(phase.mix.values()), 1, abs_tol=1e-6)
            require(fits, "behaviour.mix", "probabilities that add up to 1", dict(phase.mix))
            for player in phase.mix:
                if player != "network":
                    _check_player(game, "behaviour.mix", player)


def _check_player(game: Game, key: str, name: str) -> None:
    if name != "random" and name not in game.policies:
        raise SettingsError(f"{key}: {game.name} has no player {name!r}; it has random, {', '.join(game.policies)}")


def compose(schema: type[T], config_name: str, overrides: list[str]) -> T:
    """The settings of conf/<config_name>.yaml with command-line overrides.

    Raises SettingsError, one line that names the key, for anything Hydra or the dataclasses refuse.
    """
    with _naming(overrides):
        return settings_from_dict(schema, _composed(config_name, overrides))


def chosen_algo_and_game(overrides: list[str]) -> tuple[str, dict[str, Any]]:
    """`algo` and `game` of a command line of `python -m train`, which decide what other settings there are."""
    groups = [override for override in overrides if (CONF / override.partition("=")[0]).is_dir()]
    with _naming(groups):
        chosen = _composed("train", groups)
    return str(chosen.algo), {str(key): value for key, value in chosen.game.items()}


def combinations(overrides: list[str]) -> list[dict[str, str]]:
    """The grid that overrides such as `seed=0,1,2` or `seed=range(3)` span: {swept key: value} of each combination.

    The last key varies fastest; one empty combination if none sweeps. Raises SettingsError.
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    with _naming(overrides):
        swept = [each for each in OverridesParser.create().parse_overrides(overrides) if each.is_sweep_override()]
        for each in swept:
            once = sum(other.get_key_element() == each.get_key_element() for other in swept) == 1
            require(once, each.get_key_element(), "swept once", each.input_line)
            require(each.is_discrete_sweep(), each.get_key_element(), "a list of values, as 1,2,3", each.input_line)
        choices = {each.get_key_element(): list(each.sweep_string_iterator()) for each in swept}
    return [dict(zip(choices, values, strict=True)) for values in product(*choices.values())]


def _composed(config_name: str, overrides: list[str]) -> DictConfig:
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir

    with initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra_compose(config_name, overrides)


@contextmanager
def _naming(overrides: list[str]) -> Iterator[None]:
    """Turn whatever Hydra or the dataclasses refuse into a SettingsError that names the key."""
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    try:
        yield
    except (HydraException, OmegaConfBaseException, ValueError, TypeError) as error:
        text = str(error) if isinstance(error, SettingsError) else _one_line(error)
        named = any(override.lstrip("+~").partition("=")[0].partition(".")[0] in text for override in overrides)
        raise SettingsError(text if named else f"{text} (given: {' '.join(overrides)})") from None


def _one_line(error: Exception) -> str:
    """Hydra's and OmegaConf's messages, which take several lines, as one that names the key."""
    cause = error.__cause__ if error.__cause__ is not None and "override" in str(error).lower() else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    if "Could not find" in text:  # the choices that there are stand on the lines that follow
        text = " ".join(line for line in lines[:20] if "search path" not in line and "provider=" not in line)
    if "is not a ListConfig" in text or "to list" in text.lower():
        text = "a list is wanted, such as [a,b]"
    key = getattr(cause, "full_key", None)
    return f"{key}: {text}" if key and key not in text else text


def settings_from_dict(schema: type[T], values: Any) -> T:
    """The same settings from dictionaries, as Hydra or a checkpoint holds them. Raises SettingsError."""
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        settings = OmegaConf.to_object(OmegaConf.merge(OmegaConf.structured(schema), values))
    except SettingsError:
        raise
    except (OmegaConfBaseException, ValueError, TypeError, OverflowError) as error:
        raise SettingsError(_one_line(error)) from None
    assert isinstance(settings, schema)
    return settings


def as_yaml(settings: Any) -> str:
    """The settings as YAML, in the order of their definition."""
    return yaml.safe_dump(asdict(settings), sort_keys=False)
