"""Settings of tabular learning, which has no network, no replay buffer and no workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from cards.game import Game
from command.checks import SettingsError, check_fraction, check_one_of, check_positive, require
from train.settings.run import CheckpointSettings, RunSettings

ALGORITHMS = ("monte_carlo", "td", "q_learning")


@dataclass
class TabularSettings(RunSettings):
    """The settings of `python -m train algo=q_learning` and its like; conf/tabular.yaml and conf/algo/ explain them."""

    algo: str = "q_learning"
    episodes: int = 100_000_000
    minutes: float | None = None
    log_every_episodes: int = 2_000_000
    policy: str | None = None
    epsilon: float = 0.4
    step_size: float | None = None
    step_power: float = 1.0
    min_visits: int = 10_000
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("algo", self.algo, *ALGORITHMS)
        require(self.minutes is None or self.minutes > 0, "minutes", "more than 0, or null", self.minutes)
        check_positive("", self, "episodes", "log_every_episodes", "min_visits")
        check_fraction("", self, "epsilon")
        step = self.step_size
        require(step is None or 0 < step <= 1, "step_size", "more than 0, at most 1, or null", step)
        # Robbins and Monro: the sum of the steps must grow for ever, that of their squares must not.
        require(0.5 < self.step_power <= 1, "step_power", "more than 0.5, at most 1", self.step_power)
        evaluates = self.algo != "q_learning"
        if evaluates and self.policy is None:
            raise SettingsError("policy", f"{self.algo} evaluates a policy", "name one, as in policy=hit_below_14")
        if not evaluates and self.policy is not None:
            raise SettingsError("policy", f"q_learning finds its own, not {self.policy!r}", "say policy=null")
        game = self.load_game()
        if game.model is None:
            raise SettingsError(
                "algo", f"{self.algo} needs a game whose states can be enumerated, {game.name} is none{_other(game)}"
            )


def _other(game: Game) -> str:
    return "; say algo=batch_q_learning" if game.numbering is not None else ""
