"""Settings of tabular learning, which has no network, no replay buffer and no workers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cards.game import Game
from train.checks import SettingsError
from train.config import CheckpointSettings, load_configured_game

ALGORITHMS = ("monte_carlo", "td", "q_learning")


@dataclass
class TabularSettings:
    """What `python -m train algo=q_learning` and its like may be told; conf/tabular.yaml and conf/algo/ explain it."""

    game: dict[str, Any]
    algo: str = "q_learning"
    name: str = "default"
    seed: int = 1
    episodes: int = 100_000_000
    minutes: float | None = None
    runs: str = "runs"
    log_every_episodes: int = 2_000_000
    policy: str | None = None
    epsilon: float = 0.4
    step_size: float | None = None
    step_power: float = 1.0
    least_visits: int = 10_000
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)

    def __post_init__(self) -> None:
        _require(self.algo in ALGORITHMS, "algo", "one of " + ", ".join(ALGORITHMS), self.algo)
        _require(bool(self.name) and "/" not in self.name, "name", "the name of a folder", self.name)
        _require(self.seed >= 0, "seed", "0 or more", self.seed)
        _require(self.minutes is None or self.minutes > 0, "minutes", "more than 0, or null", self.minutes)
        for key in ("episodes", "log_every_episodes", "least_visits"):
            _require(getattr(self, key) > 0, key, "more than 0", getattr(self, key))
        _require(0 <= self.epsilon <= 1, "epsilon", "0 to 1", self.epsilon)
        step = self.step_size
        _require(step is None or 0 < step <= 1, "step_size", "more than 0, at most 1, or null", step)
        # Robbins and Monro: the sum of the steps must grow for ever, that of their squares must not.
        _require(0.5 < self.step_power <= 1, "step_power", "more than 0.5, at most 1", self.step_power)
        evaluates = self.algo != "q_learning"
        if evaluates and self.policy is None:
            raise SettingsError(f"policy: {self.algo} evaluates a policy; name one, as in policy=hit_below_14")
        if not evaluates and self.policy is not None:
            raise SettingsError(f"policy: q_learning finds its own, so {self.policy!r} has no effect; say policy=null")
        game = self.load_game()
        if game.model is None:
            raise SettingsError(f"algo: {self.algo} needs a game whose states can be enumerated, {game.name} is none")

    def load_game(self) -> Game:
        """The game with its rule options."""
        game = load_configured_game(self.game)
        rewards = ", ".join(game.rewards)
        _require(self.reward_name(game) in game.rewards, "game.reward", f"one of {rewards}", self.reward_name(game))
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
    finite = not isinstance(value, float) or math.isfinite(value)
    if not (condition and finite):
        raise SettingsError(f"{key}: {wanted}, not {value!r}")
