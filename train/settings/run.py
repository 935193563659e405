"""Settings that every run has, whatever learns in it."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cards.game import Game, load_game
from command.checks import MOST_SEED, SettingsError, check_range, one_of, require

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._=,+-]*")


@dataclass
class RunSettings:
    """The game, what learns it, and the folder of the run."""

    game: dict[str, Any]
    algo: str = ""
    name: str = "default"
    seed: int = 1
    runs: str = "runs"

    def __post_init__(self) -> None:
        require(bool(_NAME.fullmatch(self.name)), "name", "a folder of letters, digits and -_=,.", self.name)
        require(bool(self.runs.strip()), "runs", "a folder", self.runs)
        check_range("seed", self.seed, 0, MOST_SEED)
        self.load_game()

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


def load_configured_game(settings: dict[str, Any]) -> Game:
    """The game of the group `game`, with its rule options. Raises SettingsError for an unknown game or option."""
    try:
        game = load_game(str(settings.get("name")), {k: v for k, v in settings.items() if k not in ("name", "reward")})
    except ValueError as error:
        raise SettingsError(str(error)) from None
    if "reward" in settings:
        one_of("game.reward", str(settings["reward"]), *game.rewards)
    return game


def game_defaults(name: str) -> dict[str, Any]:
    """The group `game` of a game when nothing is said but its name. Raises SettingsError for an unknown one."""
    game = load_configured_game({"name": name})
    return {"name": name, "reward": next(iter(game.rewards)), **asdict(game.options)}
