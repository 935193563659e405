"""Decisions per second of each stage of a run on this machine, each measured for a second or two."""

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import torch
from rich.table import Column, Table

from busso.base import system
from busso.train.learner.cuda_graph import EAGER_CALLS
from busso.train.learner.learner import Learner, keep_compiled_code
from busso.train.learner.replay_buffer import build_replay
from busso.train.network.build import build_network
from busso.train.rollout.request import Rollout, RolloutRequest
from busso.train.rollout.worker import RolloutWorker
from busso.train.run.device import choose_device
from busso.train.settings.dqn import TrainSettings

CPUS = (8, 16, 64)  # rows of the table
WORKERS, LEARNER = "workers", "learner"
_SECONDS = 1.5  # seconds of measuring per stage
_GAMES = 512  # maximum played at a time, enough to measure
_IN_TURN = ("in the learner's process", "rollout=ray, which plays on the other CPUs")
_FEWER_UPDATES = "learner.samples_floor=0.25, or a larger learner.batch_size; these two change what the network learns"
_MOST_SAMPLES = 1.0  # samples per insert; in Tressette 2 gain no more (docs/explanation/experiments/recipe.md)
_GRAPHED, _COMPILED = "learner.cuda_graph=true, ", "learner.compile=true, "


class Scaled(NamedTuple):
    """Rates per second of a run with this number of CPUs, and the stage that limits it."""

    cpus: int
    decisions: float
    updates: float
    limit: str


@dataclass(frozen=True)
class Scaling:
    """Rates of a machine; see the module's formula."""

    worker: float  # decisions/s of one worker
    updates: float  # updates/s of a learner that never waits
    decisions: float  # per update
    floor: float = 1.0
    threads: int = 1  # CPUs of the learner
    where: str = "on the CPU"  # where the learner computes

    def on(self, cpus: int) -> Scaled:
        """Return the rates with this number of CPUs, at least one of which plays."""
        played = max(1, cpus - self.threads) * self.worker
        learned = self.updates * self.decisions / self.floor
        decisions, limit = (played, WORKERS) if played <= learned else (learned, LEARNER)
        return Scaled(cpus, decisions, min(self.updates, decisions / self.decisions), limit)

    def enough(self) -> int:
        """Return the number of CPUs that keep the learner busy; more would play games faster than it learns."""
        return self.threads + max(1, math.ceil(self.updates * self.decisions / self.floor / self.worker))


def workers_here(settings: TrainSettings) -> int:
    """Return the number of Ray workers on this node; 0 if the learner's process plays."""
    if settings.rollout.kind != "ray":
        return 0
    return settings.rollout.workers or max(1, system.cpus() - settings.learner.cpu_threads)


class Stage(NamedTuple):
    """Stage of a run, which does one thing at a time."""

    name: str
    decisions: float  # per second, without waiting for other stages
    how: str
    change: str  # settings that speed it up


@dataclass(frozen=True)
class Measured:
    """Stages of a run. `in_turn` if they share one thread, so that each waits for the others.

    `scaling` predicts the gain of more CPUs; None if games are played on a GPU.
    """

    stages: list[Stage]
    in_turn: bool
    scaling: Scaling | None = None

    @property
    def limit(self) -> Stage:
        """Slowest stage."""
        return min(self.stages, key=lambda stage: stage.decisions)

    @property
    def decisions(self) -> float:
        """Decisions per second of all stages together, without Ray's own 1.6 ms per message of its driver."""
        return 1 / sum(1 / stage.decisions for stage in self.stages) if self.in_turn else self.limit.decisions

    def busy(self, stage: Stage) -> float:
        """Return the share of the time that a stage works, 0 to 1."""
        return self.decisions / stage.decisions

    def verdict(self) -> str:
        """Describe in one line the stage that limits the run, how far, and what to change."""
        limit, total = self.limit, in_words(self.decisions)
        says = f"{limit.how}: at most {in_words(limit.decisions)} decisions/s"
        if self.in_turn:
            says += f"; all stages in turn reach {total}, and this one takes {self.busy(limit):.0%} of the time"
        return f"limited by the {limit.name}: {says}: {limit.change}"


def measure(settings: TrainSettings, seconds: float = _SECONDS) -> Measured:
    """Measure each stage separately for `seconds`, in this process."""
    device, game, rollout = choose_device(settings.device), settings.load_game(), settings.rollout
    torch.set_num_threads(rollout.torch_threads)
    of_players = choose_device("cuda" if rollout.gpus_per_worker else "cpu") if rollout.kind == "ray" else device
    played, playing = _played(settings, of_players, seconds)
    buffer, transitions = build_replay(game, settings, device), played.transitions
    inserting = seconds_of(lambda: buffer.add(transitions), device, seconds) / played.decisions
    torch.set_num_threads(settings.learner.cpu_threads)
    keep_compiled_code()
    learner = Learner(build_network(game, settings), buffer, settings.learner, settings.target, device)
    if settings.learner.compile:
        learner.compile()
    for _ in range(EAGER_CALLS if learner.graphed else 0):  # before the capture
        learner.update()
    seconds_each = Seconds(playing, inserting, seconds_of(learner.update, device, seconds))
    # Forced moves may be decisions but not transitions.
    per_transition = played.decisions / len(transitions.action)
    return stages_of(settings, seconds_each, per_transition, device, of_players, learner.graphed)


class Seconds(NamedTuple):
    """Seconds of a worker per decision, of the replay buffer per decision, and of the learner per update."""

    playing: float
    inserting: float
    updating: float


def stages_of(
    settings: TrainSettings,
    each: Seconds,
    per_transition: float,
    device: torch.device,
    of_players: torch.device,
    graphed: bool,
) -> Measured:
    """Return the stages of a run that takes these seconds on the devices of its learner and its players.

    `per_transition`: decisions per transition. `graphed`: updates are replayed as a CUDA graph.
    """
    replay = Stage("replay", 1 / each.inserting, "writing to the buffer", "no remedy: it only writes")
    paid = per_transition * settings.learner.batch_size / settings.learner.samples_per_insert  # decisions per update
    on_gpu, threads = device.type == "cuda", settings.learner.cpu_threads
    where = "on the GPU" if on_gpu else f"with learner.threads={threads}"
    scaling = Scaling(1 / each.playing, 1 / each.updating, paid, settings.learner.samples_floor, threads, where)
    stage = _learner(scaling, _faster_updates(settings, on_gpu, graphed))
    more = None if of_players.type == "cuda" else scaling
    if settings.rollout.kind != "ray":
        return Measured([Stage("rollout", 1 / each.playing, *_IN_TURN), replay, stage], True, more)
    workers, cpus = _workers(settings, each.playing, each.inserting + threads / stage.decisions)
    if on_gpu:
        more_samples = _more_samples(settings, workers.decisions, scaling.decisions * scaling.updates)
        workers = workers._replace(change=workers.change + more_samples)
    return Measured([workers, cpus, replay, stage], False, more)


def _more_samples(settings: TrainSettings, played: float, learned: float) -> str:
    """Name the samples per insert for which a learner on a GPU has time, if they are notably more than the run's.

    `played` and `learned` are decisions per second, the latter with the run's samples per insert.
    """
    now = settings.learner.samples_per_insert
    most = math.floor(10 * min(_MOST_SAMPLES, now * learned / played)) / 10
    return f"; or learner.samples_per_insert={most}, for which the GPU has time" if most >= 1.5 * now else ""


def _played(settings: TrainSettings, device: torch.device, seconds: float) -> tuple[Rollout, float]:
    """Return a rollout by the run's own worker, and its seconds per decision."""
    games = min(settings.rollout.games, _GAMES)
    worker, starts = RolloutWorker(settings, device), count(0, games)

    def play() -> Rollout:
        return worker.play(RolloutRequest(next(starts), games, settings.exploration.end))

    first = play()  # compiles the game
    started, decisions = time.perf_counter(), 0
    while not decisions or time.perf_counter() < started + seconds:
        decisions += play().decisions
    return first, (time.perf_counter() - started) / decisions


def _learner(scaling: Scaling, faster: str) -> Stage:
    """Return the learner's stage: an update for `scaling.decisions`, or for up to as many more as the floor allows."""
    least, most = scaling.decisions, scaling.decisions / scaling.floor
    each = f"{most:,.0f}" if most == least else f"{least:,.0f} to {most:,.0f}"
    how = f"{scaling.updates:,.0f} updates/s {scaling.where}, one for {each} decisions"
    return Stage("learner", most * scaling.updates, how, faster + _FEWER_UPDATES)


def _faster_updates(settings: TrainSettings, on_gpu: bool, graphed: bool) -> str:
    """Describe how to speed up updates without changing them."""
    if on_gpu:
        return ("" if graphed else _GRAPHED) + ("" if settings.learner.compile else _COMPILED)
    threads = settings.learner.cpu_threads
    more = f"learner.threads={2 * threads}, " if 2 * threads < system.cpus() else ""
    return f"{more}a GPU, "


def _workers(settings: TrainSettings, playing: float, learning: float) -> tuple[Stage, Stage]:
    """Return the stages of Ray's workers and of this node's CPUs, shared with the learner."""
    cpus, rollout = system.cpus(), settings.rollout
    workers = rollout.workers or workers_here(settings) * rollout.nodes
    here = -(-workers // rollout.nodes) / workers
    both = cpus / (playing * here + learning)
    return (
        Stage("workers", workers / playing, f"{workers} of {1 / playing:,.0f} each", "more rollout.workers"),
        Stage("CPUs", both, f"{cpus} of this node, for playing and learning", "more CPUs or fewer updates"),
    )


def seconds_of(function: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Return the mean seconds of a call after a first one, including the device's work."""
    function()
    started = _now(device)
    calls, end = 0, started + seconds
    while time.perf_counter() < end:
        function()
        calls += 1
    return (_now(device) - started) / calls


def _now(device: torch.device) -> float:
    """Return the time when the device has finished: CUDA calls return before their work is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def screen(measured: Measured) -> Iterator[Table | str]:
    """Yield a table of the stages, the verdict on the limiting one, and the scaling."""
    table = _table("stage", "decisions/s", "busy", "how", "", title="what each stage could do alone")
    for stage in measured.stages:
        mark = "limits" if stage is measured.limit else ""
        table.add_row(stage.name, f"{stage.decisions:,.0f}", f"{measured.busy(stage):.0%}", stage.how, mark)
    yield table
    yield measured.verdict()
    if (scaling := measured.scaling) is None:
        return
    table = _table("CPUs", "decisions/s", "updates/s", "limited by", title=f"rollout=ray, learner {scaling.where}")
    for found in map(scaling.on, CPUS):
        table.add_row(f"{found.cpus}", f"{found.decisions:,.0f}", f"{found.updates:,.1f}", found.limit)
    yield table
    yield (
        f"{scaling.enough()} CPUs are enough for this learner: a worker plays {scaling.worker:,.0f} decisions/s, "
        f"the learner makes {scaling.updates:,.1f} updates/s of {scaling.decisions:,.0f} decisions each"
    )


def _table(*columns: str, title: str) -> Table:
    """Return a table without rows that cuts no figure on a narrow screen."""
    return Table(*(Column(name, overflow="fold") for name in columns), title=title)


def in_words(decisions: float) -> str:
    """Format a number as 1.6 million, or in full below 100,000."""
    return f"{decisions / 1e6:.1f} million" if decisions >= 100_000 else f"{decisions:,.0f}"
