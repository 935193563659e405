"""Settings: dataclasses, composed by Hydra from conf/ and checked once, here."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from cards.game import Game, load_game
from train.checks import (
    MOST_DEALS,
    MOST_SEED,
    MOST_THREADS,
    SettingsError,
    check_range,
    one_of,
    positive,
    require,
    share,
)

if TYPE_CHECKING:
    from omegaconf import DictConfig

CONF = Path(__file__).resolve().parent.parent / "conf"
T = TypeVar("T")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=,+-]*")


@dataclass
class NetworkSettings:
    """Shape of the Q-network."""

    hidden: list[int] = field(default_factory=lambda: [256, 256])
    dueling: bool = False

    def __post_init__(self) -> None:
        fits = len(self.hidden) > 0 and all(0 < width <= 65536 for width in self.hidden)
        require(fits, "network.hidden", "one or more widths from 1 to 65536", self.hidden)


@dataclass
class LearnerSettings:
    """The update; see `train.learner`."""

    lr: float = 3e-4
    lr_end: float = 3e-4
    batch_size: int = 512
    gamma: float = 0.99
    n_step: int = 1
    double: bool = False
    loss: str = "huber"
    grad_clip: float = 10.0
    target_sync: int = 2000
    target_tau: float = 0.0
    average: float = 0.0
    precision: str = "auto"
    threads: int = 1
    samples_per_insert: float = 1.0
    min_replay: int = 10_000

    def __post_init__(self) -> None:
        positive("learner", self, "lr", "batch_size", "n_step", "target_sync", "min_replay", "samples_per_insert")
        require(self.grad_clip > 0, "learner.grad_clip", "more than 0 (inf: no limit)", self.grad_clip)
        check_range("learner.threads", self.threads, 1, MOST_THREADS)
        share("learner", self, "gamma", "target_tau", "average")
        require(0 <= self.lr_end <= self.lr, "learner.lr_end", "0 to learner.lr", self.lr_end)
        require(self.average < 1, "learner.average", "less than 1", self.average)
        one_of("learner.loss", self.loss, "huber", "mse")
        one_of("learner.precision", self.precision, "auto", "float32", "bfloat16", "float16")


@dataclass
class ReplaySettings:
    """The replay buffer; `prioritised` samples in proportion to |TD error| ** alpha."""

    capacity: int = 1_000_000
    prioritised: bool = False
    alpha: float = 0.6
    beta: float = 0.4

    def __post_init__(self) -> None:
        positive("replay", self, "capacity")
        share("replay", self, "alpha", "beta")
        require(not self.prioritised or self.alpha > 0, "replay.alpha", "more than 0 when prioritised", self.alpha)


@dataclass
class ExplorationSettings:
    """Epsilon falls linearly from `start` to `end` over the first `updates` updates."""

    start: float = 1.0
    end: float = 0.05
    updates: int = 20_000

    def __post_init__(self) -> None:
        share("exploration", self, "start", "end")
        require(self.updates >= 0, "exploration.updates", "0 or more", self.updates)


@dataclass
class PhaseSettings:
    """Who sits in a seat during training, by probability, until this episode (`null`: to the end)."""

    until: int | None = None
    mix: dict[str, float] = field(default_factory=dict)


@dataclass
class RolloutSettings:
    """Who plays the games. `batch` games are one unit of work; no `workers`: one for every CPU but the learner's."""

    kind: str = "local"
    batch: int = 512
    workers: int | None = None
    in_flight: int = 2
    gpus_per_worker: float = 0.0
    threads: int = 1
    max_weights_age: int = 10_000
    heartbeat_seconds: float = 60.0
    nodes: int = 1
    join_seconds: float = 120.0

    def __post_init__(self) -> None:
        one_of("rollout.kind", self.kind, "local", "ray")
        require(self.workers is None or self.workers > 0, "rollout.workers", "more than 0, or null", self.workers)
        positive("rollout", self, "batch", "in_flight", "nodes", "join_seconds", "max_weights_age", "heartbeat_seconds")
        check_range("rollout.threads", self.threads, 1, MOST_THREADS)
        fits = 0 <= self.gpus_per_worker <= 1 or self.gpus_per_worker.is_integer()
        require(fits, "rollout.gpus_per_worker", "a share from 0 to 1, or whole GPUs", self.gpus_per_worker)


@dataclass
class EvaluationSettings:
    """Duplicate deals against players without a network: during training, and once more at the end."""

    every_episodes: int = 20_000
    deals: int = 512
    opponents: list[str] = field(default_factory=lambda: ["random"])
    final_deals: int = 4096

    def __post_init__(self) -> None:
        positive("evaluation", self, "every_episodes")
        check_range("evaluation.deals", self.deals, 2, MOST_DEALS)
        check_range("evaluation.final_deals", self.final_deals, 2, MOST_DEALS)
        once = len(set(self.opponents)) == len(self.opponents)
        require(once, "evaluation.opponents", "each player once", self.opponents)


@dataclass
class CheckpointSettings:
    """A checkpoint every so many episodes; the last `keep` stay, besides `best`."""

    every_episodes: int = 15_000
    keep: int = 3

    def __post_init__(self) -> None:
        positive("checkpoint", self, "every_episodes", "keep")


@dataclass
class TrainSettings:
    """Everything that `python -m train` may be told; conf/ holds the same keys with their comments."""

    game: dict[str, Any]
    algo: str = "dqn"
    name: str = "default"
    seed: int = 1
    episodes: int = 100_000
    minutes: float | None = None
    runs: str = "runs"
    device: str = "auto"
    log_every_episodes: int = 5_000
    network: NetworkSettings = field(default_factory=NetworkSettings)
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    exploration: ExplorationSettings = field(default_factory=ExplorationSettings)
    behaviour: list[PhaseSettings] = field(default_factory=list)
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)

    def __post_init__(self) -> None:
        one_of("algo", self.algo, "dqn")
        positive("train", self, "episodes", "log_every_episodes")
        require(self.minutes is None or self.minutes > 0, "minutes", "more than 0, or null", self.minutes)
        check_run(self.name, self.runs, self.seed)
        game = self.load_game()
        self._check_behaviour(game)
        for opponent in self.evaluation.opponents:
            _check_player(game, "evaluation.opponents", opponent)

    def load_game(self) -> Game:
        """The game with its rule options."""
        return load_configured_game(self.game)

    @property
    def game_name(self) -> str:
        """The package that holds the game."""
        return str(self.game.get("name", ""))

    def reward_name(self, game: Game) -> str:
        """The chosen training signal, the game's first unless `game.reward` says otherwise."""
        return str(self.game.get("reward", next(iter(game.rewards))))

    @property
    def folder(self) -> Path:
        """Where the run lives: runs/<game>/<name>."""
        return Path(self.runs) / self.game_name / self.name

    def _check_behaviour(self, game: Game) -> None:
        require(bool(self.behaviour), "behaviour", "at least one phase", self.behaviour)
        ends = [math.inf if phase.until is None else phase.until for phase in self.behaviour]
        rising = all(a < b for a, b in pairwise(ends)) and ends[0] > 0 and ends[-1] == math.inf
        require(rising, "behaviour", "phases by rising `until`, the last with until: null", ends)
        for phase in self.behaviour:
            fits = all(p >= 0 for p in phase.mix.values()) and math.isclose(sum(phase.mix.values()), 1, abs_tol=1e-6)
            require(fits, "behaviour.mix", "probabilities that add up to 1", dict(phase.mix))
            for player in phase.mix:
                if player != "network":
                    _check_player(game, "behaviour.mix", player)


def check_run(name: str, runs: str, seed: int) -> None:
    """Raise SettingsError unless a run may have this name, folder and seed."""
    require(bool(_NAME.fullmatch(name)), "name", "a folder of letters, digits and -_=,.", name)
    require(bool(runs.strip()), "runs", "a folder", runs)
    check_range("seed", seed, 0, MOST_SEED)


def load_configured_game(settings: dict[str, Any]) -> Game:
    """The game of the group `game`, with its rule options. Raises SettingsError for an unknown game or option."""
    try:
        game = load_game(str(settings.get("name")), {k: v for k, v in settings.items() if k not in ("name", "reward")})
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if "reward" in settings:
        one_of("game.reward", str(settings["reward"]), *game.rewards)
    return game


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


def differences(old: dict[str, Any], new: dict[str, Any], prefix: str = "") -> dict[str, tuple[Any, Any]]:
    """Keys, dotted, whose values differ between two nested dictionaries."""
    found: dict[str, tuple[Any, Any]] = {}
    for key in sorted(old.keys() | new.keys()):
        a, b = old.get(key), new.get(key)
        if isinstance(a, dict) and isinstance(b, dict):
            found |= differences(a, b, f"{prefix}{key}.")
        elif a != b:
            found[prefix + key] = (a, b)
    return found
