"""Settings of a DQN run: groups, each checked by itself, and `TrainSettings`, which contains them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, make_dataclass, replace
from itertools import pairwise
from typing import Annotated, Any, ClassVar

from busso.base import own_files
from busso.base.bounds import Bounds
from busso.base.errors import InputError
from busso.cards.game import Game
from busso.cards.player_specs import CHAMPION, PlayerSpec, champion_file, kind_and_options
from busso.command.conf_folder import values_of_conf
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
from busso.command.settings.compose import settings_from_dict
from busso.command.settings.quoting import spelled
from busso.train.settings.run import CheckpointSettings, RunSettings, job_minutes

NETWORK = "network"  # the learning network in `opponents.phases.mix`
SEAT, SIDE = "seat", "side"  # what one draw of `opponents.phases.mix` fills
MAX_BITS = 2**20  # maximum observation bits that a network sees
MAX_LAYERS = 100
Discounts = tuple[float, float]  # of what follows a decision without a reward, and one with a reward
MIX = "opponents.phases.mix"
MAX_WAIT = 1e6  # maximum seconds that a process waits for another
DEFAULT_MINUTES = 9.0  # budget of a run that names none
ROLLOUT_KINDS = ("local", "ray")
LEAST_LOOK_SECONDS, MOST_LOOK_SECONDS = 0.1, 0.5  # between two heartbeats of a Ray worker, unless there are many
MOST_HEARTBEATS = 200  # per second, over all workers: a seventh of a core at 0.7 ms each
AUTO = "auto"
# Settings of busso's own networks, which cannot be combined with `network.module`.
OF_BUSSOS_NETWORKS = ("network.hidden", "network.symmetric", "network.dueling", "learner.muon", "learner.precision")
MOST_DECISIONS = 64  # per game, an upper bound for memory estimates: 40 in Tressette


def spelled_code(key: str, text: str) -> str:
    """Return the canonical name of a class or function in a Python file. Raises SettingsError."""
    if own_files.parted(text) is None:
        raise SettingsError(key, f"expected a Python file, as in ./net.py:NAME, not {text}")
    return spelled(key, text)


@dataclass
class NetworkSettings:
    """Shape of the Q-network.

    With `module`, an nn.Module in a Python file of the user's own, the shape of busso's networks is cleared.
    """

    hidden: Annotated[list[int], Bounds(1, 65_536)]
    symmetric: bool
    inputs: Annotated[int | None, Bounds(1, MAX_BITS, words=(None,))]
    dueling: bool
    module: str | None
    init_from: str | None

    def __post_init__(self) -> None:
        check_numbers("network", self)
        if self.module is not None:
            self.module = spelled_code("network.module", self.module)
            self.hidden, self.symmetric, self.dueling = [], False, False
            return
        require(0 < len(self.hidden) <= MAX_LAYERS, "network.hidden", f"1 to {MAX_LAYERS} widths", self.hidden)

    def check(self, game: Game) -> None:
        """Raise SettingsError if the game lacks the bits or the symmetric parts."""
        inputs = self.inputs or game.bits
        require(inputs <= game.bits, "network.inputs", f"at most {game.bits}, the bits of {game.name}", inputs)
        if not self.symmetric:
            return
        if game.symmetry is None:
            raise SettingsError("network.symmetric", f"{game.name} has no symmetric parts", "use false")
        try:
            game.symmetry.first(inputs)
        except ValueError as error:
            raise SettingsError("network.inputs", error, "use null, or network.symmetric=false") from None


@dataclass
class ReplaySettings:
    """Settings of the replay buffer."""

    capacity: Annotated[int, Bounds(1, 10**12)]
    newest_share: Annotated[float, Bounds(0.0, 1.0, above=True)]

    def __post_init__(self) -> None:
        check_numbers("replay", self)


@dataclass
class ExplorationSettings:
    """Epsilon, decreasing linearly from `start` to `end` over the first `fraction` of the run's budget."""

    start: Annotated[float, Bounds(0.0, 1.0)]
    end: Annotated[float, Bounds(0.0, 1.0)]
    fraction: Annotated[float, Bounds(0.0, 1.0)]

    def __post_init__(self) -> None:
        check_numbers("exploration", self)


@dataclass
class PhaseSettings:
    """Probabilities of the players in training until the episode `until` (`null`: to the end).

    With `each: seat` each seat is drawn separately. With `each: side` the network plays one side of each game (a team,
    or a seat of Spike), and one player is drawn for all other seats. These defaults are here, as conf/ has none for the
    items of a list.
    """

    until: Annotated[int | None, Bounds(1, MAX_COUNT, words=(None,))] = None
    mix: Annotated[dict[str, float], Bounds(0.0, 1.0)] = field(default_factory=dict)
    each: str = SEAT

    def __post_init__(self) -> None:
        check_numbers("opponents.phases", self)
        check_one_of("opponents.phases.each", self.each, SEAT, SIDE)
        shares = {spelled("opponents.phases.mix", player): share for player, share in self.mix.items()}
        require(len(shares) == len(self.mix), "opponents.phases.mix", "each player once", list(self.mix))
        self.mix = shares


@dataclass
class OpponentSettings:
    """Players in training games: by `phases`, or `only` one player against which one side learns."""

    only: str | None
    phases: list[PhaseSettings]

    def __post_init__(self) -> None:
        self.only = None if self.only is None else spelled("opponents.only", self.only)


@dataclass
class LambdaReturns:
    """Targets computed by the players, from the values by which they play."""

    kind: str = field(default="lambda_returns", kw_only=True)
    td_lambda: Annotated[float, Bounds(0.0, 1.0)]

    def __post_init__(self) -> None:
        check_numbers("target", self)


@dataclass
class TargetNetwork:
    """Targets computed by the learner, with a delayed copy of the network."""

    kind: str = field(default="target_network", kw_only=True)
    n_step: Annotated[int, Bounds(1, 1_000_000)]
    tau: Annotated[float, Bounds(0.0, 1.0)]
    update_interval: Annotated[int, Bounds(1, MAX_COUNT)]

    def __post_init__(self) -> None:
        check_numbers("target", self)


Targets = LambdaReturns | TargetNetwork
_SCHEMAS: dict[str, type[Targets]] = {schema.kind: schema for schema in (LambdaReturns, TargetNetwork)}


def targets_of(values: Any) -> Targets:
    """Return the settings of the group `target`. Raises SettingsError, also for a setting of another kind.

    Such a setting comes from a file, or from changing only `target.kind`.
    """
    if isinstance(values, Targets):
        return values
    if not isinstance(values, Mapping):
        raise SettingsError("target", f"expected one of {', '.join(_SCHEMAS)}, not {values!r}")
    kind = values.get("kind")
    check_one_of("target.kind", str(kind), *_SCHEMAS)
    schema = _SCHEMAS[str(kind)]
    for other in _SCHEMAS.values():
        strange = (_names(other) - _names(schema)) & values.keys()
        if strange and not _names(schema) <= values.keys():
            raise SettingsError("target.kind", f"the settings belong to {other.kind}", f"use target={kind}")
        if strange:
            raise SettingsError(f"target.{min(strange)}", f"unknown setting of {kind}", f"use target={other.kind}")
    whole = make_dataclass("Settings", [("target", schema)])  # so that errors name `target.`
    found: Targets = settings_from_dict(whole, {"target": values_of_conf(f"target/{kind}") | dict(values)}).target
    return found


def _names(schema: type[Targets]) -> set[str]:
    return {field.name for field in fields(schema)}


def check_player(game: Game, key: str, text: str) -> None:
    """Raise SettingsError naming `key` unless this is a player of the game with valid options or a path.

    A path is not a name: `./x` is the folder x. Whether it exists is checked when a run starts, not when an old run's
    settings are read.
    """
    try:
        spec = PlayerSpec.parse(text)
        if spec.who in game.kinds and game.kinds[spec.who].of_network:
            alone = spec.of or CHAMPION
            raise InputError(spec, "a search with a network cannot play in training", f"use {alone}")
        if spec.path is None:
            shipped = f", {CHAMPION}" * (champion_file(game) is not None)
            kind_and_options(game, spec, f"{shipped}, or a run folder or checkpoint file")
    except InputError as error:
        raise SettingsError(key, error) from None


def check_phases(phases: Sequence[PhaseSettings], episodes: int | None) -> None:
    """Raise SettingsError unless the phases cover a whole run of `episodes`."""
    require(bool(phases), "opponents.phases", "at least one phase", phases)
    ends = [math.inf if phase.until is None else phase.until for phase in phases]
    rising = all(a < b for a, b in pairwise(ends)) and ends[-1] == math.inf
    require(rising, "opponents.phases", "phases in order of `until`, the last with until: null", ends)
    last = max((phase.until for phase in phases if phase.until is not None), default=0)
    fits = last == 0 or (episodes is not None and last < episodes)
    require(fits, "opponents.phases", f"phases within the budget (use episodes=N above {last})", episodes)
    for phase in phases:
        fits = math.isclose(sum(phase.mix.values()), 1, abs_tol=1e-6)
        require(fits, MIX, "probabilities that add up to 1", dict(phase.mix))


@dataclass
class LearnerSettings:
    """Settings of the update; see `busso.train.learner.learner`."""

    lr: Annotated[float, Bounds(0.0, MAX_FLOAT, above=True)]
    lr_end: Annotated[float, Bounds(0.0, MAX_FLOAT)]
    batch_size: Annotated[int, Bounds(1, 100_000_000)]
    gamma: Annotated[float, Bounds(0.0, 1.0)]
    discount_per: str
    muon: Annotated[float, Bounds(0.0, 1e6)]
    loss: str
    grad_clip: Annotated[float, Bounds(0.0, MAX_FLOAT, above=True, words=(math.inf,))]
    ema_decay: Annotated[float, Bounds(0.0, 1.0, below=True)]
    precision: str
    cuda_graph: bool | str
    compile: bool
    threads: Annotated[int | str, Bounds(1, MAX_THREADS, words=(AUTO,))]
    samples_per_insert: Annotated[float, Bounds(0.0, 1e9, above=True)]
    samples_floor: Annotated[float, Bounds(0.0, 1.0, above=True)]
    learning_starts: Annotated[int, Bounds(1, MAX_COUNT)]

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

    kind: str
    games: Annotated[int, Bounds(1, 100_000_000)]
    workers: Annotated[int | None, Bounds(1, 1_000_000, words=(None,))]
    in_flight: Annotated[int, Bounds(1, 1_000_000)]
    gpus_per_worker: Annotated[float, Bounds(0.0, 1024.0)]
    torch_threads: Annotated[int, Bounds(1, MAX_THREADS)]
    publish_ms: Annotated[float, Bounds(0.0, 60_000.0)]
    max_weights_age: Annotated[int, Bounds(1, MAX_COUNT)]
    heartbeat_seconds: Annotated[float, Bounds(0.0, MAX_WAIT, above=True)]
    nodes: Annotated[int, Bounds(1, 1_000_000)]
    join_seconds: Annotated[float, Bounds(0.0, MAX_WAIT, above=True)]

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

    every_episodes: Annotated[int, Bounds(1, MAX_COUNT)]
    min_seconds: Annotated[float, Bounds(0.0, MAX_SECONDS)]
    max_seconds: Annotated[float, Bounds(0.0, MAX_SECONDS)]
    deals: Annotated[int, Bounds(2, MAX_DEALS)]
    opponents: list[str]
    final_deals: Annotated[int, Bounds(2, MAX_DEALS)]
    best_metric: str

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
    """Settings of `busso train algo=dqn`; conf/algo/dqn.yaml explains them."""

    ALGORITHMS: ClassVar = ("dqn",)

    episodes: Annotated[int | None, Bounds(1, MAX_COUNT, words=(None,))]
    minutes: Annotated[float | None, Bounds(0.0, MAX_MINUTES, above=True, words=(None,))]
    clock: str
    device: str
    log_every_episodes: Annotated[int, Bounds(1, MAX_COUNT)]
    log_min_seconds: Annotated[float, Bounds(0.0, MAX_SECONDS)]
    network: NetworkSettings
    target: Any  # converted to Targets, a union
    learner: LearnerSettings
    replay: ReplaySettings
    exploration: ExplorationSettings
    opponents: OpponentSettings
    rollout: RolloutSettings
    evaluation: EvaluationSettings
    checkpoint: CheckpointSettings

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("clock", self.clock, "wall", "cpu")
        if self.clock == "cpu" and self.rollout.kind != "local":
            raise SettingsError("clock", "cpu is the time of one process", "use rollout=local, or clock=wall")
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

    @classmethod
    def defaults(cls, algo: str) -> dict[str, Any]:
        """See RunSettings."""
        return super().defaults(algo) | {"target": {"kind": TargetNetwork.kind}}

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
