"""Settings of tabular learning and of batch Q-learning, which have no network, replay buffer or workers."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from busso.base.bounds import Bounds
from busso.cards.game import MAX_ACTIONS
from busso.command.settings.checks import (
    MAX_COUNT,
    MAX_DEALS,
    MAX_MINUTES,
    SettingsError,
    check_numbers,
    require,
)
from busso.train.settings.run import CheckpointSettings, RunSettings, check_opponent


@dataclass
class TabularSettings(RunSettings):
    """Settings of `busso train algo=q_learning` and the other tabular algorithms; conf/algo/ explains them."""

    ALGORITHMS: ClassVar = ("q_learning", "td", "monte_carlo")

    episodes: Annotated[int, Bounds(1, MAX_COUNT)]
    minutes: Annotated[float | None, Bounds(0.0, MAX_MINUTES, above=True, words=(None,))]
    log_every_episodes: Annotated[int, Bounds(1, MAX_COUNT)]
    policy: str | None
    epsilon: Annotated[float, Bounds(0.0, 1.0)]
    step_size: Annotated[float | None, Bounds(0.0, 1.0, above=True, words=(None,))]
    # Robbins and Monro: the sum of the steps must diverge, and that of their squares converge.
    step_power: Annotated[float, Bounds(0.5, 1.0, above=True)]
    min_visits: Annotated[int, Bounds(1, MAX_COUNT)]
    checkpoint: CheckpointSettings

    def __post_init__(self) -> None:
        super().__post_init__()
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

    opponents: list[str]
    final_deals: Annotated[int, Bounds(2, MAX_DEALS)]

    def __post_init__(self) -> None:
        check_numbers("evaluation", self)


@dataclass
class BatchQSettings(RunSettings):
    """Settings of `busso train algo=batch_q_learning`; conf/algo/batch_q_learning.yaml explains them."""

    ALGORITHMS: ClassVar = ("batch_q_learning",)

    iterations: Annotated[int, Bounds(1, MAX_DEALS)]
    games: Annotated[int, Bounds(1, MAX_DEALS)]
    passes: Annotated[int, Bounds(1, MAX_DEALS)]
    epsilon: Annotated[float, Bounds(0.0, 1.0)]
    epsilon_decay: Annotated[float, Bounds(0.0, 1.0)]
    unexplored: Annotated[list[int], Bounds(0, MAX_ACTIONS - 1)]
    step_size: Annotated[float, Bounds(0.0, 1.0, above=True)]
    discount: Annotated[float, Bounds(0.0, 1.0)]
    whole_games: bool
    save_every: Annotated[int, Bounds(1, MAX_DEALS)]
    evaluation: FinalEvaluationSettings

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
