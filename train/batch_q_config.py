"""Settings of batch Q-learning in a table, which has no network, no replay buffer and no workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cards.game import Game
from train.config import SettingsError, load_configured_game


@dataclass
class BatchQSettings:
    """What `python -m train algo=q_learning` may be told; conf/batch_q.yaml explains it."""

    game: dict[str, Any]
    algo: str = "q_learning"
    name: str = "default"
    seed: int = 1
    runs: str = "runs"
    iterations: int = 50
    games: int = 2000
    passes: int = 20
    epsilon: float = 0.9
    epsilon_decay: float = 0.9556
    unexplored: list[int] = field(default_factory=list)
    step_size: float = 0.1
    discount: float = 1.0
    save_every: int = 5

    def __post_init__(self) -> None:
        for key in ("iterations", "games", "passes", "save_every"):
            _require(getattr(self, key) > 0, key, "more than 0", getattr(self, key))
        for key in ("epsilon", "epsilon_decay", "discount"):
            _require(0 <= getattr(self, key) <= 1, key, "0 to 1", getattr(self, key))
        _require(0 < self.step_size <= 1, "step_size", "more than 0, at most 1", self.step_size)
        _require(bool(self.name) and "/" not in self.name, "name", "the name of a folder", self.name)
        _require(self.seed >= 0, "seed", "0 or more", self.seed)
        game = self.load_game()
        actions = all(0 <= action < game.actions for action in self.unexplored)
        _require(actions, "unexplored", f"actions from 0 to {game.actions - 1}", list(self.unexplored))
        if game.numbering is None:
            raise SettingsError(f"algo: q_learning needs numbered states, and {game.name} has none")

    def load_game(self) -> Game:
        """The game with its rule options."""
        game = load_configured_game(self.game)
        known = ", ".join(game.rewards)
        _require(self.reward_name(game) in game.rewards, "game.reward", f"one of {known}", self.reward_name(game))
        return game

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


def _require(condition: bool, key: str, wanted: str, value: object) -> None:
    if not condition:
        raise SettingsError(f"{key}: {wanted}, not {value!r}")
