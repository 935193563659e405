"""A model of a run's throughput: what a decision takes of each stage, which stage is full first, what to change then.

Every stage is a resource that does one thing at a time, or several that do the same side by side. At `D` decisions a
second it is busy for `D * seconds + fixed` of each second, and a run plays as fast as the first stage that is busy all
the time lets it. docs/performance.md has what comes of the measured constants for many workers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from train.dqn.network.q_network import QNetwork
from train.settings.dqn import MOST_HEARTBEATS


@dataclass(frozen=True)
class Load:
    """What a run asks of its stages, from its settings and its game."""

    workers: int  # by Ray
    nodes: int  # of equal size; the learner is on the first
    cpus: int  # of each node
    decisions: int  # of one rollout, which comes back as one message
    bytes: float  # of a decision, on its way and in the buffer: 141 for Tressette
    batch_size: int
    samples_per_insert: float
    publish_seconds: float  # between new weights
    weight_bytes: float
    threads: int = 1  # that play in the learner's process, each a block of games

    @property
    def updates_per_decision(self) -> float:
        """That the learner owes for each decision."""
        return self.samples_per_insert / self.batch_size

    @property
    def workers_here(self) -> int:
        """Workers on the learner's node: spread evenly, the odd ones here."""
        return -(-self.workers // self.nodes)


@dataclass(frozen=True)
class Speeds:
    """What the code takes on this machine, each measured by itself: `python -m train doctor` does it. Seconds."""

    playing: float  # a decision, by one worker or thread, forward pass included
    inserting: float  # a decision, into the replay buffer
    update: float  # one
    games: float = 0.0  # a decision, on one thread or on the GPU, without the forward pass
    forward: float = 0.0  # a decision, in large batches on the learner's device
    upload: float = 0.0  # bytes a second to the learner's device; 0: it is the CPU, and nothing is uploaded


@dataclass(frozen=True)
class RayCosts:
    """What Ray adds. Seconds, of a CPU where nothing else is said; `python -m tests.bench scaling` measures them."""

    call: float  # of a worker, for each rollout
    hear: float  # of the learner's thread, for each rollout: asking for it and hearing of it
    publish: float  # of the learner's thread, for each publication of weights
    message: float  # of the driver, for each rollout
    driver_byte: float  # of the driver, for each byte of a rollout
    beat: float  # of the driver in each second, for each worker: two heartbeats
    store: float  # bytes a second that one process copies into the object store
    transfer: float  # bytes a second from the object store of one node into another's, the link aside


# On two cores of an AMD EPYC with AVX512-BF16, 2026-11-22: 2, 8 and 32 stub workers, and two nodes on one machine, so
# `transfer` is over loopback. Foretold for 16 workers, rollouts a second to 1.01 of what was seen, the driver's share
# of a core to 0.83.
MEASURED = RayCosts(
    call=2.7e-3,
    hear=7.7e-5,
    publish=7.2e-4,
    message=1.6e-3,
    driver_byte=1.3e-9,
    beat=1.4e-3,
    store=1.4e9,
    transfer=4.7e8,
)


class Stage(NamedTuple):
    """Seconds that one decision takes of the stage's time, and the share of it that goes whatever is played."""

    name: str
    seconds: float
    fixed: float
    change: str  # what gives more, in the words of the settings

    @property
    def capacity(self) -> float:
        """Decisions a second at most; infinite for a stage that has nothing to do."""
        if self.fixed >= 1:
            return 0.0
        return (1 - self.fixed) / self.seconds if self.seconds > 0 else float("inf")


class Prediction(NamedTuple):
    """Decisions a second end to end; how busy each stage is then, 0 to 1; and the stage that is full."""

    decisions: float
    busy: dict[str, float]
    limit: Stage


NETWORK_BYTES = 10e9 / 8  # a second, of a link of 10 Gb/s


def saturate(stages: Sequence[Stage]) -> Prediction:
    """Of stages side by side: as fast as the one with the least capacity."""
    limit = min(stages, key=lambda stage: stage.capacity)
    decisions = limit.capacity
    busy = {stage.name: min(1.0, decisions * stage.seconds + stage.fixed) for stage in stages}
    return Prediction(decisions, busy, limit)


def in_turn(stages: Sequence[Stage]) -> Prediction:
    """Of stages that share one thread or device: each waits for the others, and the longest limits the run."""
    decisions = (1 - sum(stage.fixed for stage in stages)) / sum(stage.seconds for stage in stages)
    busy = {stage.name: decisions * stage.seconds + stage.fixed for stage in stages}
    return Prediction(decisions, busy, max(stages, key=lambda stage: busy[stage.name]))


def predict(
    kind: str, load: Load, speeds: Speeds, ray: RayCosts = MEASURED, network: float = NETWORK_BYTES
) -> Prediction:
    """For a rollout kind; Ray's costs and the bytes/s of the network matter to kind `ray` alone."""
    stages = stages_of(kind, load, speeds, ray, network)
    return in_turn(stages) if kind in ("local", "device") else saturate(stages)


def stages_of(
    kind: str, load: Load, speeds: Speeds, ray: RayCosts = MEASURED, network: float = NETWORK_BYTES
) -> list[Stage]:
    """The stages of a rollout kind, see `predict`."""
    if kind == "local":
        return [_playing(speeds), *_learning(load, speeds)]
    if kind == "threads":
        return _stages_of_threads(load, speeds)
    if kind == "device":
        games = Stage("games", speeds.games, 0.0, "rollout=threads, if CPUs are free")
        return [games, _forward(speeds), *_learning(load, speeds)]
    return _stages_of_ray(load, speeds, ray, network)


_DRAW_BYTES = 8  # of a decision: the key of its random draw goes to the GPU with it, and not into the buffer
_FEWER_UPDATES = "a larger learner.batch_size, or a smaller learner.samples_per_insert"
_FEWER_MESSAGES = "a larger rollout.games: fewer messages"


def _playing(speeds: Speeds) -> Stage:
    return Stage("rollout", speeds.playing, 0.0, "rollout=ray, which plays on the other CPUs")


def _forward(speeds: Speeds) -> Stage:
    return Stage("forward", speeds.forward, 0.0, "a smaller network.hidden")


def _learning(load: Load, speeds: Speeds) -> list[Stage]:
    return [
        Stage("replay", speeds.inserting, 0.0, "nothing: writing to the buffer is all it does"),
        Stage("learner", load.updates_per_decision * speeds.update, 0.0, _FEWER_UPDATES),
    ]


def _stages_of_threads(load: Load, speeds: Speeds) -> list[Stage]:
    """Games on threads of the learner's process.

    With a GPU threads step games while it computes the values of others and learns. On a CPU every thread computes the
    values of its own games, and the learner's thread learns beside them on the same cores.
    """
    learning = _learning(load, speeds)
    threads = min(load.threads, load.cpus)  # more take turns on the same CPUs
    if not speeds.upload:
        learner = Stage("learner", sum(stage.seconds for stage in learning), 0.0, _FEWER_UPDATES)
        cpus = (speeds.playing + learner.seconds) / load.cpus
        return [
            Stage("games", speeds.playing / threads, 0.0, "more rollout.actor_threads"),
            learner,
            Stage("CPUs", cpus, 0.0, "more CPUs for the job, or a GPU"),
        ]
    device = [_forward(speeds), *learning]
    longest = max(device, key=lambda stage: stage.seconds)
    says = f"{longest.name} takes most of it: {longest.change}"
    return [
        Stage("games", speeds.games / threads, 0.0, "more rollout.actor_threads, as far as there are CPUs"),
        Stage("upload", (load.bytes + _DRAW_BYTES) / speeds.upload, 0.0, "nothing: the link is full"),
        Stage("device", sum(stage.seconds for stage in device), 0.0, says),
    ]


def _stages_of_ray(load: Load, speeds: Speeds, ray: RayCosts, network: float) -> list[Stage]:
    """Workers, learner, driver, object store, network, and the CPUs that those on the learner's node share.

    The driver is the process that speaks Ray: it has one thread that counts. Rollouts of this node's workers are
    copied into its object store by themselves, those of other nodes by one process, over the network. Weights go
    from here to every other node once; the link is reckoned as if both directions shared it.
    """
    here = load.workers_here / load.workers
    away = 1 - here
    worker = speeds.playing + ray.call / load.decisions + load.bytes / ray.store
    learner = sum(stage.seconds for stage in _learning(load, speeds)) + ray.hear / load.decisions
    publishing = ray.publish / load.publish_seconds
    driver = ray.message / load.decisions + load.bytes * ray.driver_byte
    beating = ray.beat * min(load.workers, MOST_HEARTBEATS / 2)
    store = here * load.bytes / (ray.store * load.workers_here) + away * load.bytes / ray.transfer
    weights = (load.nodes - 1) * load.weight_bytes / load.publish_seconds / network
    cpus = (here * worker + learner + driver) / load.cpus
    return [
        Stage("workers", worker / load.workers, 0.0, "more rollout.workers"),
        Stage("learner", learner, publishing, f"{_FEWER_UPDATES}; or a GPU for the learner"),
        Stage("driver", driver, beating, _FEWER_MESSAGES),
        Stage("object store", store, 0.0, "more of the workers on the learner's node, or rollout=threads there"),
        Stage("network", away * load.bytes / network, weights, "a faster link, or rollout=threads with a GPU"),
        Stage("CPUs", cpus, (publishing + beating) / load.cpus, "more nodes, or fewer updates"),
    ]


def flops(network: QNetwork) -> float:
    """Floating-point operations of one row's forward pass: two for every weight, as often as it is used."""
    return 2.0 * network.products()
