"""Settings of a DQN run: groups, each checked by itself, and `TrainSettings`, which contains them."""

import math
from dataclasses import dataclass, field, replace
from typing import Any

from busso.cards.base import own_files
from busso.cards.base.bounds import bounded
from busso.command.settings.checks import (
    MAX_COUNT,
    MAX_DEALS,
    MAX_FLOAT,
    MAX_MINUTES,
    MAX_SECONDS,
    MAX_THREADS,
    SettingsError,
    check_numbers,
    check_one_of,
    require,
)
from busso.command.settings.quoting import spelled
from busso.train.settings.learning import (
    NETWORK,
    SIDE,
    ExplorationSettings,
    NetworkSettings,
    OpponentSettings,
    ReplaySettings,
    spelled_code,
)
from busso.train.settings.players import check_phases, check_player
from busso.train.settings.run import CheckpointSettings, RunSettings, job_minutes
from busso.train.settings.targets import Discounts, TargetNetwork, targets_of

MAX_WAIT = 1e6  # maximum seconds that a process waits for another
DEFAULT_MINUTES = 9.0  # budget of a run that names none
ROLLOUT_KINDS = ("local", "ray")
LEAST_LOOK_SECONDS, MOST_LOOK_SECONDS = 0.1, 0.5  # between two heartbeats of a Ray worker, unless there are many
MOST_HEARTBEATS = 200  # per second, over all workers: a seventh of a core at 0.7 ms each
AUTO = "auto"
# Settings of busso's own networks, which cannot be combined with `network.module`.
OF_BUSSOS_NETWORKS = ("network.hidden", "network.symmetric", "network.dueling", "learner.muon", "learner.precision")
MOST_DECISIONS = 64  # per game, an upper bound for memory estimates: 40 in Tressette


@dataclass
class LearnerSettings:
    """Settings of the update; see `busso.train.dqn.learner.learner`."""

    lr: float = bounded(1e-3, 0.0, MAX_FLOAT, above=True)
    lr_end: float = bounded(1e-5, 0.0, MAX_FLOAT)
    batch_size: int = bounded(1024, 1, 100_000_000)
    gamma: float = bounded(1.0, 0.0, 1.0)
    discount_per: str = "decision"
    muon: float = bounded(0.0, 0.0, 1e6)
    loss: str = "mse"
    grad_clip: float = bounded(10.0, 0.0, MAX_FLOAT, above=True, words=(math.inf,))
    ema_decay: float = bounded(0.99, 0.0, 1.0, below=True)
    precision: str = "auto"
    cuda_graph: bool | str = AUTO
    compile: bool = False
    threads: int | str = bounded(AUTO, 1, MAX_THREADS)
    samples_per_insert: float = bounded(0.5, 0.0, 1e9, above=True)
    samples_floor: float = bounded(1.0, 0.0, 1.0, above=True)
    learning_starts: int = bounded(10_000, 1, MAX_COUNT)

    def __post_init__(self) -> None:
        check_numbers("learner", self)
        require(self.lr_end <= self.lr, "learner.lr_end", "0 to learner.lr", self.lr_end)
        if own_files.parted(self.loss):
            self.loss = spelled_code("learner.loss", self.loss)
        else:
            check_one_of("learner.loss", self.loss, "huber", "mse", "a function in a Python file, ./net.py:NAME")
        check_one_of("learner.discount_per", self.discount_per, "decision", "reward")
        check_one_of("learner.precision", self.precision, "auto", "float32", "bfloat16")
        graphs = (AUTO, True, False)
        require(self.cuda_graph in graphs, "learner.cuda_graph", "auto, true or false", self.cuda_graph)

    @property
    def discounts(self) -> Discounts:
        """Discounts by `gamma` and `discount_per`."""
        return (self.gamma if self.discount_per == "decision" else 1.0, self.gamma)

    @property
    def cpu_threads(self) -> int:
        """`threads`, or 1 for `auto` until `with_learner_threads` has set a number."""
        return self.threads if isinstance(self.threads, int) else 1


@dataclass
class RolloutSettings:
    """Settings of rollouts of `games` games each. By default there is a worker for every CPU but one."""

    kind: str = "ray"
    games: int = bounded(512, 1, 100_000_000)
    workers: int | None = bounded(None, 1, 1_000_000)
    in_flight: int = bounded(2, 1, 1_000_000)
    gpus_per_worker: float = bounded(0.0, 0.0, 1024.0)
    torch_threads: int = bounded(1, 1, MAX_THREADS)
    publish_ms: float = bounded(500.0, 0.0, 60_000.0)
    max_weights_age: int = bounded(10_000, 1, MAX_COUNT)
    heartbeat_seconds: float = bounded(60.0, 0.0, MAX_WAIT, above=True)
    nodes: int = bounded(1, 1, 1_000_000)
    join_seconds: float = bounded(120.0, 0.0, MAX_WAIT, above=True)

    def __post_init__(self) -> None:
        check_numbers("rollout", self)
        check_one_of("rollout.kind", self.kind, *ROLLOUT_KINDS)
        fits = self.gpus_per_worker <= 1 or self.gpus_per_worker.is_integer()
        require(fits, "rollout.gpus_per_worker", "a share from 0 to 1 or whole GPUs", self.gpus_per_worker)

    def look_seconds(self, workers: int) -> float:
        """Return the seconds between two heartbeats of each of `workers` Ray workers, which also carry new weights.

        With hundreds of workers they are less frequent, as they would keep the Ray driver busy.
        """
        soon = max(LEAST_LOOK_SECONDS, min(MOST_LOOK_SECONDS, self.publish_ms / 1000))
        return max(soon, min(workers / MOST_HEARTBEATS, self.heartbeat_seconds / 4))


@dataclass
class EvaluationSettings:
    """Duplicate deals against fixed players, during training and at the end."""

    every_episodes: int = bounded(50_000, 1, MAX_COUNT)
    min_seconds: float = bounded(15.0, 0.0, MAX_SECONDS)
    max_seconds: float = bounded(600.0, 0.0, MAX_SECONDS)
    deals: int = bounded(1024, 2, MAX_DEALS)
    opponents: list[str] = field(default_factory=lambda: ["random"])
    final_deals: int = bounded(4096, 2, MAX_DEALS)
    best_metric: str = "win_rate"

    def __post_init__(self) -> None:
        check_numbers("evaluation", self)
        self.opponents = [spelled("evaluation.opponents", opponent) for opponent in self.opponents]
        once = len(set(self.opponents)) == len(self.opponents)
        require(once, "evaluation.opponents", "each player once", self.opponents)
        measure, against, named = self.best_metric.partition(":")
        check_one_of("evaluation.best_metric", measure, "win_rate", "result")
        opponent = spelled("evaluation.best_metric", named) if named else ""
        self.best_metric = measure + against + opponent
        if against and opponent not in self.opponents:
            problem = f"{opponent!r} is not in evaluation.opponents ({', '.join(self.opponents) or 'none'})"
            raise SettingsError("evaluation.best_metric", problem, "add it there")

    @property
    def most(self) -> float:
        """Maximum seconds between expensive evaluations; 0 if they depend on episodes only (`min_seconds=0`)."""
        return self.max_seconds if self.min_seconds else 0.0

    @property
    def best_measure(self) -> str:
        """Measure of the best network: `win_rate`, or `result`, its mean result minus the opponents'."""
        return self.best_metric.partition(":")[0]

    @property
    def best_against(self) -> list[str]:
        """Opponents over which the measure is averaged: the one named in `best_metric`, else all."""
        _, against, opponent = self.best_metric.partition(":")
        return [opponent] if against else list(self.opponents)


@dataclass
class TrainSettings(RunSettings):
    """Settings of `busso train algo=dqn`; conf/ has the same keys, with comments."""

    algo: str = "dqn"
    episodes: int | None = bounded(None, 1, MAX_COUNT)
    minutes: float | None = bounded(None, 0.0, MAX_MINUTES, above=True)
    device: str = "auto"
    log_every_episodes: int = bounded(10_000, 1, MAX_COUNT)
    log_min_seconds: float = bounded(2.0, 0.0, MAX_SECONDS)
    network: NetworkSettings = field(default_factory=NetworkSettings)
    target: Any = field(default_factory=lambda: {"kind": TargetNetwork.kind})  # converted to Targets, a union
    learner: LearnerSettings = field(default_factory=LearnerSettings)
    replay: ReplaySettings = field(default_factory=ReplaySettings)
    exploration: ExplorationSettings = field(default_factory=ExplorationSettings)
    opponents: OpponentSettings = field(default_factory=OpponentSettings)
    rollout: RolloutSettings = field(default_factory=RolloutSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    checkpoint: CheckpointSettings = field(default_factory=CheckpointSettings)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("algo", self.algo, "dqn")
        self.target = targets_of(self.target)
        game = self.load_game()
        self.network.check(game)
        if self.network.module is not None:  # Muon and number formats apply to busso's own networks
            self.learner = replace(self.learner, muon=0.0, precision="float32")
        check_phases(self.opponents.phases, self.episodes)
        for key, names in self.players.items():
            for player in names:
                check_player(game, key, player)
        sides = self.opponents.only is not None or any(phase.each == SIDE for phase in self.opponents.phases)
        if sides and len(game.teams) < 2:
            key = "opponents.phases.each" if self.opponents.only is None else "opponents.only"
            raise SettingsError(key, f"{game.name} has one side and no opponents", "leave it out")

    @property
    def players(self) -> dict[str, list[str]]:
        """Players that the network meets, by the setting that names them."""
        mixed = dict.fromkeys(player for phase in self.opponents.phases for player in phase.mix)
        named = [player for player in mixed if player != NETWORK]
        return {
            "opponents.phases.mix": [] if self.opponents.only is not None else named,
            "opponents.only": [] if self.opponents.only is None else [self.opponents.only],
            "evaluation.opponents": list(self.evaluation.opponents),
        }

    @property
    def learns_with(self) -> list[str]:
        """Players in the games that the network learns from."""
        return [*self.players["opponents.phases.mix"], *self.players["opponents.only"]]

    @property
    def names_no_budget(self) -> bool:
        """True if neither episodes nor minutes are set."""
        return self.episodes is None and self.minutes is None

    @property
    def training_minutes(self) -> float | None:
        """`minutes`; without a budget, the minutes that fit into the Slurm job, or DEFAULT_MINUTES outside one."""
        return job_minutes() or DEFAULT_MINUTES if self.names_no_budget else self.minutes
