"""Groups of settings of a DQN run: what learns, from what, and with whom. Each is checked by itself."""

from __future__ import annotations

from dataclasses import dataclass, field

from cards.game import Game
from cards.kinds import same_spelling
from command.checks import (
    MAX_THREADS,
    SettingsError,
    check_fraction,
    check_one_of,
    check_positive,
    check_range,
    require,
)

SEAT, SIDE = "seat", "side"  # what a draw of `behaviour.mix` is for
MAX_MEMBERS = 256  # of a league: each has the weights of a network, in memory and in every checkpoint


@dataclass
class NetworkSettings:
    """Shape of the Q-network. Without `inputs` it sees all bits of an observation."""

    hidden: list[int] = field(default_factory=lambda: [256, 256, 256])
    symmetric: bool = False
    inputs: int | None = None
    dueling: bool = False
    first_layer: str = "auto"
    start: str | None = None

    def __post_init__(self) -> None:
        check_one_of("network.first_layer", self.first_layer, "auto", "gather", "unpack")
        fits = len(self.hidden) > 0 and all(0 < width <= 65536 for width in self.hidden)
        require(fits, "network.hidden", "one or more widths from 1 to 65536", self.hidden)
        require(self.inputs is None or self.inputs > 0, "network.inputs", "more than 0, or null", self.inputs)

    def check(self, game: Game) -> None:
        """Raise SettingsError where the game has no such bits, or no parts that are alike."""
        inputs = self.inputs or game.bits
        require(inputs <= game.bits, "network.inputs", f"at most {game.bits}, as {game.name} has them", inputs)
        if not self.symmetric:
            return
        if game.symmetry is None:
            raise SettingsError("network.symmetric", f"{game.name} has no parts that are alike", "say false")
        try:
            game.symmetry.first(inputs)
        except ValueError as error:
            raise SettingsError("network.inputs", error, "say null, or network.symmetric=false") from None


@dataclass
class LearnerSettings:
    """The update; see `train.dqn.learner`."""

    lr: float = 1e-3
    lr_end: float = 1e-5
    batch_size: int = 1024
    gamma: float = 1.0
    n_step: int = 2
    n_step_cut: bool = False
    double: bool = False
    loss: str = "mse"
    grad_clip: float = 10.0
    target_update_interval: int = 2000
    target_tau: float = 0.01
    ema_decay: float = 0.99
    precision: str = "auto"
    cuda_graphs: bool = True
    threads: int = 1
    samples_per_insert: float = 0.5
    learning_starts: int = 10_000

    def __post_init__(self) -> None:
        check_positive(
            "learner",
            self,
            "lr",
            "batch_size",
            "n_step",
            "target_update_interval",
            "learning_starts",
            "samples_per_insert",
        )
        require(self.grad_clip > 0, "learner.grad_clip", "more than 0 (inf: no limit)", self.grad_clip)
        check_range("learner.threads", self.threads, 1, MAX_THREADS)
        check_fraction("learner", self, "gamma", "target_tau", "ema_decay")
        require(0 <= self.lr_end <= self.lr, "learner.lr_end", "0 to learner.lr", self.lr_end)
        require(self.ema_decay < 1, "learner.ema_decay", "less than 1", self.ema_decay)
        check_one_of("learner.loss", self.loss, "huber", "mse")
        check_one_of("learner.precision", self.precision, "auto", "float32", "bfloat16", "float16")


@dataclass
class ReplaySettings:
    """The replay buffer; `prioritised` samples in proportion to |TD error| ** alpha."""

    capacity: int = 1_000_000
    prioritised: bool = False
    alpha: float = 0.6
    beta: float = 0.4
    beta_end: float = 1.0

    def __post_init__(self) -> None:
        check_positive("replay", self, "capacity")
        check_fraction("replay", self, "alpha", "beta", "beta_end")
        require(self.beta <= self.beta_end, "replay.beta_end", "replay.beta to 1", self.beta_end)
        require(not self.prioritised or self.alpha > 0, "replay.alpha", "more than 0 when prioritised", self.alpha)

    @property
    def exponent(self) -> float:
        """Of priorities: 0 where sampling is uniform."""
        return self.alpha if self.prioritised else 0.0


@dataclass
class ExplorationSettings:
    """Epsilon falls linearly from `start` to `end` over the first `share` of the run's budget."""

    start: float = 1.0
    end: float = 0.05
    share: float = 0.03

    def __post_init__(self) -> None:
        check_fraction("exploration", self, "start", "end")
        require(0 <= self.share <= 1, "exploration.share", "0 to 1, a share of the budget of the run", self.share)


@dataclass
class PhaseSettings:
    """Who plays during training, by probability, until this episode (`null`: to the end).

    With `each: seat` every seat is drawn by itself. With `each: side` the network keeps one side of each game (a
    team, a seat of Spike), and the draw says who has all other seats.
    """

    until: int | None = None
    mix: dict[str, float] = field(default_factory=dict)
    each: str = SEAT

    def __post_init__(self) -> None:
        check_one_of("behaviour.each", self.each, SEAT, SIDE)
        spelled = {same_spelling(player): share for player, share in self.mix.items()}
        require(len(spelled) == len(self.mix), "behaviour.mix", "each player once", list(self.mix))
        self.mix = spelled


@dataclass
class LeagueSettings:
    """Past selves of the network, of which one plays in each rollout; see `train.dqn.league`."""

    every_episodes: int = 20_000
    size: int = 16
    recent: float = 0.5

    def __post_init__(self) -> None:
        check_positive("league", self, "every_episodes")
        check_range("league.size", self.size, 2, MAX_MEMBERS)
        check_fraction("league", self, "recent")
