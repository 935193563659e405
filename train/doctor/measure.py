"""How many decisions a second each stage of a run can make on this machine, measured for a second or two each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import count
from typing import NamedTuple

import torch
from rich.table import Table

from train.doctor import foretold
from train.dqn.learner.learner import Learner
from train.dqn.learner_threads import STEPS, seconds_of_update
from train.dqn.network.build import build_network
from train.dqn.replay.buffer import TransitionTensors
from train.dqn.replay.transitions import Transitions
from train.dqn.requests import UPDATES_AT_ONCE
from train.dqn.rollout.backend import RolloutBackend
from train.dqn.rollout.request import Rollout, RolloutRequest
from train.dqn.rollout.worker import build_replay
from train.run.device import choose_device
from train.run.metrics import resources
from train.settings.dqn import CPU_GAMES, TrainSettings

Make = Callable[[TrainSettings, torch.device], RolloutBackend]

_SECONDS = 1.5  # of measuring, for each stage
_IN_TURN = {
    "local": ("in the learner's process", "rollout=ray, which plays on the other CPUs"),
    "device": ("on the learner's GPU", "a smaller network.hidden"),
}
_FEWER_UPDATES = "learner.samples_per_insert=auto, a larger learner.batch_size, or more learner.replicas"


def workers_here(settings: TrainSettings) -> int:
    """Ray workers on this node; 0 where the learner's process plays."""
    if settings.rollout.kind != "ray":
        return 0
    return settings.rollout.workers or max(1, resources.cpus() - settings.learner.cpu_threads)


def counts_this_node_alone(settings: TrainSettings) -> bool:
    """Whether the run takes as many workers as a cluster has CPUs, of which only those of this node are known here."""
    rollout = settings.rollout
    return rollout.kind == "ray" and not rollout.workers and bool(os.environ.get("RAY_ADDRESS"))


class Stage(NamedTuple):
    """A part of a run that does one thing at a time."""

    name: str
    decisions: float  # a second, if it waits for no other stage
    how: str
    change: str  # what gives more, in the words of the settings


@dataclass(frozen=True)
class Measured:
    """The stages of a run. In turn: they share one thread, so that each waits for the others."""

    stages: list[Stage]
    in_turn: bool
    speeds: foretold.Speeds | None = None  # of a run with Ray workers, for what it would get elsewhere

    @property
    def limit(self) -> Stage:
        """The slowest stage."""
        return min(self.stages, key=lambda stage: stage.decisions)

    @property
    def decisions(self) -> float:
        """Decisions a second of all stages together. Ray's own time is not counted: 1.6 ms a message of its driver."""
        return 1 / sum(1 / stage.decisions for stage in self.stages) if self.in_turn else self.limit.decisions

    def busy(self, stage: Stage) -> float:
        """The share of the time that a stage works, 0 to 1."""
        return self.decisions / stage.decisions

    def verdict(self) -> str:
        """One line: the stage that limits the run, how far, and what to change."""
        limit, total = self.limit, in_words(self.decisions)
        says = f"{limit.how}: at most {in_words(limit.decisions)} decisions/s"
        if self.in_turn:
            says += f"; in turn with the others {total}, {self.busy(limit):.0%} of the time its own"
        return f"limited by the {limit.name}: {says}: {limit.change}"


def measure(settings: TrainSettings, make: Make, seconds: float = _SECONDS) -> Measured:
    """Measure each stage by itself for `seconds`, in this process; `make` opens rollouts."""
    kind, device, game = settings.rollout.kind, choose_device(settings.device), settings.load_game()
    torch.set_num_threads(settings.rollout.torch_threads)
    transitions, playing = _played(settings, device, make, seconds)
    buffer = build_replay(game, settings, device)
    inserting = seconds_of(lambda: buffer.add(transitions), device, seconds) / len(transitions.action)
    torch.set_num_threads(settings.learner.cpu_threads)
    learner = Learner(build_network(game, settings), buffer, settings.learner, device, game.actions)
    update = seconds_of(lambda: learner.update_many(UPDATES_AT_ONCE), device, seconds) / UPDATES_AT_ONCE
    stage, pays = _learner(settings, update)
    replay = Stage("replay", 1 / inserting, "writing to the buffer", "nothing: it does nothing else")
    if kind in ("local", "device"):
        return Measured([Stage("rollout", 1 / playing, *_IN_TURN[kind]), replay, stage], True)
    on_gpu = device.type == "cuda"
    speeds, learning = None, inserting + settings.learner.cpu_threads * update / pays
    if kind == "ray":
        updating = {1: update} if on_gpu else _updating(learner)
        weights = sum(each.numel() for each in learner.online.parameters())
        batch = settings.learner.batch_size
        floor = settings.learner.samples_floor
        speeds = foretold.Speeds(playing, inserting, updating, pays * floor, floor, weights, batch, on_gpu)
    return Measured([*_players(settings, playing, learning, on_gpu), replay, stage], False, speeds)


def _updating(learner: Learner) -> dict[int, float]:
    """Seconds of an update by each number of threads that has CPUs here."""
    return {threads: seconds_of_update(learner, threads) for threads in STEPS if threads <= resources.cpus()}


def _played(
    settings: TrainSettings, device: torch.device, make: Make, seconds: float
) -> tuple[Transitions | TransitionTensors, float]:
    """What the run's own rollouts bring, of Ray one worker in this process; and a CPU's seconds for a decision."""
    rollout = replace(settings.rollout, nodes=1, workers=None)
    if rollout.kind == "ray":
        rollout, device = replace(rollout, kind="local"), choose_device("cuda" if rollout.gpus_per_worker else "cpu")
    with closing(make(replace(settings, rollout=rollout), device)) as rollouts:
        games = min(rollouts.games(), CPU_GAMES) if device.type == "cpu" else rollouts.games()
        starts = count(0, games)

        def some() -> list[Rollout]:
            while rollouts.free_slots() > 0:
                rollouts.submit(RolloutRequest(next(starts), games, settings.exploration.end))
            return rollouts.ready(wait=True)

        while not (first := some()):  # compiles
            pass
        started, decisions = now(device), 0
        while not decisions or time.perf_counter() < started + seconds:
            decisions += sum(len(each.transitions.action) for each in some())
        return first[0].transitions, _threads(settings) * (now(device) - started) / decisions


def _threads(settings: TrainSettings) -> int:
    """How many CPUs play in the learner's process."""
    rollout, cpus = settings.rollout, resources.cpus()
    if rollout.kind != "threads":
        return 1
    return min(rollout.actor_threads or max(1, cpus - settings.learner.cpu_threads), cpus)


def _learner(settings: TrainSettings, update: float) -> tuple[Stage, float]:
    """The learner whose update takes these seconds, and the decisions that one pays for at most."""
    learner = settings.learner
    least = learner.batch_size / learner.samples_per_insert
    pays = least / learner.samples_floor
    each = f"{pays:,.0f}" if pays == least else f"{least:,.0f} to {pays:,.0f}"
    how = f"{1 / update:,.0f} updates/s with learner.threads={learner.cpu_threads} pay for {each} decisions each"
    return Stage("learner", pays / update, how, _FEWER_UPDATES), pays


def _players(settings: TrainSettings, playing: float, learning: float, on_gpu: bool = False) -> Iterator[Stage]:
    """Ray workers, or threads of the learner's process; and the CPUs of this node, unless threads wait for a GPU."""
    cpus, rollout = resources.cpus(), settings.rollout
    if rollout.kind == "ray":
        players = rollout.workers or workers_here(settings) * rollout.nodes
        here = -(-players // rollout.nodes) / players
        yield Stage("workers", players / playing, f"{players} of {1 / playing:,.0f} each", "more rollout.workers")
    else:
        players, here = _threads(settings), 1.0  # more take turns on the same CPUs
        how = f"{players} threads of {1 / playing:,.0f} each"
        yield Stage("games", players / playing, how, "more rollout.actor_threads")
        if on_gpu:
            return
    both = cpus / (playing * here + learning)
    yield Stage("CPUs", both, f"{cpus} of this node, for playing and learning", "more CPUs, or fewer updates")


def seconds_of(function: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Mean seconds of a call, after a first one, with what it leaves the device to do."""
    function()
    started = now(device)
    calls, end = 0, started + seconds
    while time.perf_counter() < end:
        function()
        calls += 1
    return (now(device) - started) / calls


def now(device: torch.device) -> float:
    """The clock once the device has done all that this thread gave it: CUDA's calls return before their work is done.

    Only the stream is waited for: CUDA refuses to wait for the device while a thread captures, and breaks its capture.
    """
    if device.type == "cuda":
        torch.cuda.current_stream(device).synchronize()
    return time.perf_counter()


def screen(measured: Measured) -> Iterator[Table | str]:
    """The stages, and the line that names the one that limits the run."""
    table = Table("stage", "decisions/s", "busy", "how", "", title="what each stage could do by itself")
    for stage in measured.stages:
        mark = "limits" if stage is measured.limit else ""
        table.add_row(stage.name, f"{stage.decisions:,.0f}", f"{measured.busy(stage):.0%}", stage.how, mark)
    yield table
    yield measured.verdict()
    if measured.speeds:
        yield from foretold.screen(measured.speeds)


def in_words(decisions: float) -> str:
    """1.6 million; below 100,000 the number itself."""
    return f"{decisions / 1e6:.1f} million" if decisions >= 100_000 else f"{decisions:,.0f}"
