"""Settings of tabular learning and of batch Q-learning, which have no network, replay buffer or workers."""

from dataclasses import dataclass, field

from busso.base.bounds import bounded
from busso.cards.game import MAX_ACTIONS
from busso.command.settings.checks import (
    MAX_COUNT,
    MAX_DEALS,
    MAX_MINUTES,
    SettingsError,
    check_numbers,
    check_one_of,
    require,
)
from busso.train.settings.run import CheckpointSettings, RunSettings, check_opponent

ALGORITHMS = ("monte_carlo", "td", "q_learning")
BATCH_Q_LEARNING = "batch_q_learning"


@dataclass
class TabularSettings(RunSettings):
    """Settings of `busso train algo=q_learning` and the other tabular algorithms; conf/algo/ explains them."""

    algo: str = "q_learning"
    episodes: int = bounded(100_000_000, 1, MAX_COUNT)
    minutes: float | None = bounded(None, 0.0, MAX_MINUTES, above=True)
    log_every_episodes: int = bounded(2_000_000, 1, MAX_COUNT)
    policy: str | None = None
    epsilon: float = bounded(0.4, 0.0, 1.0)
    step_size: float | None = bounded(None, 0.0, 1.0, above=True)
    # Robbins and Monro: the sum of the steps must diverge, and that of their squares converge.
    step_power: float = bounded(1.0, 0.5, 1.0, above=True)
    min_visits: int = bounded(10_000, 1, MAX_COUNT)
    checkpoint: CheckpointSettings = field(default_factory=lambda: CheckpointSettings(20_000_000, 5.0))

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("algo", self.algo, *ALGORITHMS)
        evaluates = self.algo != "q_learning"
        if evaluates and self.policy is None:
            hint = "add one, as in policy=hit_below_14"
            raise SettingsError("policy", f"{self.algo} needs a policy to evaluate", hint)
        if not evaluates and self.policy is not None:
            raise SettingsError("policy", f"q_learning finds its own policy, not {self.policy!r}", "use policy=null")
        game = self.load_game()
        if game.model is None:
            other = "use algo=batch_q_learning" if game.numbering is not None else ""
            problem = f"{self.algo} needs a game whose states can be enumerated, unlike {game.name}"
            raise SettingsError("algo", problem, other)


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
