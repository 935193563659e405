"""Settings of tabular batch Q-learning, which has no network, replay buffer or workers."""

from dataclasses import dataclass, field

from busso.cards.base.bounds import bounded
from busso.cards.game import MAX_ACTIONS
from busso.command.settings.checks import MAX_DEALS, SettingsError, check_numbers, require
from busso.train.settings.run import RunSettings, check_opponent

BATCH_Q_LEARNING = "batch_q_learning"


@dataclass
class FinalEvaluationSettings:
    """Duplicate deals against players without a table, once, at the end."""

    opponents: list[str] = field(default_factory=lambda: ["random"])
    final_deals: int = bounded(2048, 2, MAX_DEALS)

    def __post_init__(self) -> None:
        check_numbers("evaluation", self)


@dataclass
class BatchQSettings(RunSettings):
    """Settings of `busso train algo=batch_q_learning`; conf/algo/batch_q_learning.yaml explains them."""

    algo: str = BATCH_Q_LEARNING
    iterations: int = bounded(50, 1, MAX_DEALS)
    games: int = bounded(2000, 1, MAX_DEALS)
    passes: int = bounded(20, 1, MAX_DEALS)
    epsilon: float = bounded(0.9, 0.0, 1.0)
    epsilon_decay: float = bounded(0.9556, 0.0, 1.0)
    unexplored: list[int] = bounded([], 0, MAX_ACTIONS - 1)
    step_size: float = bounded(0.1, 0.0, 1.0, above=True)
    discount: float = bounded(1.0, 0.0, 1.0)
    whole_games: bool = False
    save_every: int = bounded(5, 1, MAX_DEALS)
    evaluation: FinalEvaluationSettings = field(default_factory=FinalEvaluationSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        game = self.load_game()
        from busso.cards.tables import numbering_of

        try:
            numbering_of(game)
        except ValueError as error:
            raise SettingsError("algo", error) from None
        for opponent in self.evaluation.opponents:
            check_opponent(game, opponent)
        actions = all(action < game.actions for action in self.unexplored)
        require(actions, "unexplored", f"actions from 0 to {game.actions - 1}", list(self.unexplored))
