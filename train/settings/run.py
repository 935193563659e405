"""Settings common to all kinds of learning."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, ClassVar

from busso.base.bounds import Bounds
from busso.base.files import NumberedFiles
from busso.cards.game import Game
from busso.cards.player_specs import PlayerSpec, kind_and_options
from busso.command.conf_folder import values_of_conf
from busso.command.settings.checks import (
    MAX_COUNT,
    MAX_MINUTES,
    MAX_SECONDS,
    MAX_SEED,
    SettingsError,
    check_numbers,
    check_one_of,
    require,
)
from busso.command.settings.game import GameSettings, load_configured_game

CHECKPOINTS = NumberedFiles("episode_", 12, ".pt")  # in the folder checkpoints/ of a run, by episodes or iterations
BUDGET_KEYS = ("episodes", "iterations", "minutes")  # length of a run; no kind of run has all of them
# Location and hardware of a run, set anew at each start.
MACHINE_KEYS = ("device", "learner.threads", "learner.cuda_graph", "learner.compile", "runs", "name", "dir")
_PART = r"[A-Za-z0-9][A-Za-z0-9._=,+-]*"
_NAME = re.compile(rf"{_PART}(/{_PART})*")


@dataclass
class RunSettings(GameSettings):
    """Game, learning algorithm and folder of a run.

    The dataclasses of settings have types, bounds and checks; the default values are in conf/ alone.
    """

    ALGORITHMS: ClassVar[tuple[str, ...]]  # values of `algo`, the usual one first

    game: dict[str, Any]
    algo: str
    name: str
    seed: Annotated[int, Bounds(0, MAX_SEED)]
    runs: str
    dir: str | None = field(default=None, kw_only=True)  # run folder, if hydra.run.dir overrides runs/<game>/<name>

    def __post_init__(self) -> None:
        check_numbers("", self)
        check_one_of("algo", self.algo, *self.ALGORITHMS)
        require(is_run_name(self.name), "name", "a folder name of letters, digits and -_=,. (or a/b)", self.name)
        require(bool(self.runs.strip()), "runs", "a folder", self.runs)
        self.load_game()

    @classmethod
    def defaults(cls, algo: str) -> dict[str, Any]:
        """Return the values in conf/ for one of these algorithms, the first if it is not one, for any game."""
        name = algo if algo in cls.ALGORITHMS else cls.ALGORITHMS[0]
        return values_of_conf("train") | values_of_conf(f"algo/{name}")

    def load_game(self) -> Game:
        """Return the game with its rule options."""
        return load_configured_game(self.game)

    @property
    def game_name(self) -> str:
        """Name of the game's package."""
        return str(self.game.get("name", ""))

    def reward_name(self, game: Game) -> str:
        """Return the reward name: `game.reward`, or else the game's first."""
        return str(self.game.get("reward", next(iter(game.rewards))))

    @property
    def folder(self) -> Path:
        """Run folder: runs/<game>/<name>, unless hydra.run.dir overrides it."""
        return Path(self.dir) if self.dir is not None else Path(self.runs) / self.game_name / self.name


@dataclass
class CheckpointSettings:
    """Checkpoint every `every_episodes` episodes, of which the last `keep` and `best` are kept.

    They are at least `min_seconds` apart, and up to `max_seconds` if they would take more than 2% of the time.
    """

    every_episodes: Annotated[int, Bounds(1, MAX_COUNT)]
    min_seconds: Annotated[float, Bounds(0.0, MAX_SECONDS)]
    max_seconds: Annotated[float, Bounds(0.0, MAX_SECONDS)]
    keep: Annotated[int, Bounds(1, MAX_COUNT)]

    def __post_init__(self) -> None:
        check_numbers("checkpoint", self)


def is_run_name(text: str) -> bool:
    """Return whether runs/<game>/<text> is a valid run folder."""
    return _NAME.fullmatch(text) is not None


def job_minutes() -> float | None:
    """Return the training minutes that fit the Slurm job (BUSSO_MINUTES of slurm/lib/train.sh); None outside one."""
    try:
        minutes = float(os.environ.get("BUSSO_MINUTES", ""))
    except ValueError:
        return None
    return min(minutes, MAX_MINUTES) if minutes > 0 else None


def check_opponent(game: Game, spec: str) -> None:
    """Raise SettingsError unless the game has this player with these options."""
    try:
        kind_and_options(game, PlayerSpec.parse(spec))
    except ValueError as error:
        raise SettingsError("evaluation.opponents", error) from None
