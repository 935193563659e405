"""Settings of batch Q-learning in a table, which has no network, no replay buffer and no workers."""

from __future__ import annotations

from dataclasses import dataclass, field

from command.checks import MAX_DEALS, SettingsError, check_fraction, check_range, require
from train.settings.run import RunSettings, check_opponent

BATCH_Q_LEARNING = "batch_q_learning"


@dataclass
class FinalEvaluationSettings:
    """Duplicate deals against players without a table, once at the end."""

    opponents: list[str] = field(default_factory=lambda: ["random"])
    final_deals: int = 2048

    def __post_init__(self) -> None:
        check_range("evaluation.final_deals", self.final_deals, 2, MAX_DEALS)


@dataclass
class BatchQSettings(RunSettings):
    """The settings of `python -m train algo=batch_q_learning`; conf/batch_q.yaml explains them."""

    algo: str = BATCH_Q_LEARNING
    iterations: int = 50
    games: int = 2000
    passes: int = 20
    epsilon: float = 0.9
    epsilon_decay: float = 0.9556
    unexplored: list[int] = field(default_factory=list)
    step_size: float = 0.1
    discount: float = 1.0
    whole_games: bool = False
    save_every: int = 5
    evaluation: FinalEvaluationSettings = field(default_factory=FinalEvaluationSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        for key in ("iterations", "games", "passes", "save_every"):
            check_range(key, getattr(self, key), 1, MAX_DEALS)
        check_fraction("", self, "epsilon", "epsilon_decay", "discount")
        require(0 < self.step_size <= 1, "step_size", "more than 0, at most 1", self.step_size)
        game = self.load_game()
        try:
            from cards.tables import numbering_of

            numbering_of(game)
        except ValueError as error:
            raise SettingsError("algo", error) from None
        for opponent in self.evaluation.opponents:
            check_opponent(game, opponent)
        actions = all(0 <= action < game.actions for action in self.unexplored)
        require(actions, "unexplored", f"actions from 0 to {game.actions - 1}", list(self.unexplored))
