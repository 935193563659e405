"""Settings of tabular learning, which has no network, replay buffer or workers."""

from dataclasses import dataclass, field

from busso.cards.base.bounds import bounded
from busso.command.settings.checks import MAX_COUNT, MAX_MINUTES, SettingsError, check_one_of
from busso.train.settings.run import CheckpointSettings, RunSettings

ALGORITHMS = ("monte_carlo", "td", "q_learning")


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
