"""Settings of batch Q-learning in a table, which has no network, no replay buffer and no workers."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cards.game import Game
from train.checks import MOST_DEALS, SettingsError, check_range, require
from train.config import check_run, load_configured_game


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
            check_range(key, getattr(self, key), 1, MOST_DEALS)
        for key in ("epsilon", "epsilon_decay", "discount"):
            require(0 <= getattr(self, key) <= 1, key, "0 to 1", getattr(self, key))
        require(0 < self.step_size <= 1, "step_size", "more than 0, at most 1", self.step_size)
        check_run(self.name, self.runs, self.seed)
        game = self.load_game()
        actions = all(0 <= action < game.actions for action in self.unexplored)
        require(actions, "unexplored", f"actions from 0 to {game.actions - 1}", list(self.unexplored))
        if game.numbering is None:
            raise SettingsError(f"algo: q_learning needs numbered states, and {game.name} has none")

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
