"""How many decisions a second each stage of a run can do on this machine, measured for a second or two each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from rich.table import Table

from cards.compiled.splitmix import stream
from cards.game import Game
from cards.play import play
from cards.players import RandomPlayer
from train.dqn.learner.learner import Learner
from train.dqn.network.build import build_network, inference_network
from train.dqn.replay.buffer import ReplayBuffer
from train.dqn.replay.transitions import TransitionRecorder, Transitions
from train.dqn.rollout.request import RolloutRequest
from train.dqn.rollout.worker import RolloutWorker, build_replay
from train.dqn.trainer import UPDATES_AT_ONCE
from train.run.device import choose_device
from train.run.metrics import resources
from train.settings.dqn import TrainSettings

_SECONDS = 1.5  # of measuring, for each stage
_ROWS = 16_384  # of a large forward pass
_FEWER_UPDATES = "a larger learner.batch_size, or a smaller learner.samples_per_insert"


def workers_here(settings: TrainSettings) -> int:
    """Ray workers on this node; 0 where the learner's process plays."""
    if settings.rollout.kind != "ray":
        return 0
    return settings.rollout.workers or max(1, resources.cpus() - settings.learner.threads)


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
    """The stages of a run. In turn: they share one thread or device, so that each waits for the others."""

    stages: list[Stage]
    in_turn: bool

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


def measure(settings: TrainSettings, seconds: float = _SECONDS) -> Measured:
    """Measure each stage by itself for so many seconds, in this process."""
    kind, device, game = settings.rollout.kind, choose_device(settings.device), settings.load_game()
    on_gpu = device.type == "cuda" and kind in ("threads", "device")
    torch.set_num_threads(settings.rollout.torch_threads)
    transitions, playing = _rollout(settings, device, seconds)
    decisions = len(transitions.action)
    buffer = build_replay(game, settings, device)
    inserting = seconds_of(lambda: buffer.add(transitions), device, seconds) / decisions
    torch.set_num_threads(settings.learner.threads)
    learner, learning = _learner(settings, game, buffer, device, seconds)
    replay = Stage("replay", 1 / inserting, "writing to the buffer", "nothing: it does nothing else")
    if on_gpu:
        games, forward = _apart(settings, game, device, transitions, seconds)
        ahead = Stage("forward", 1 / forward, f"passes over {_ROWS:,} rows", "a smaller network.hidden")
        if kind == "device":
            return Measured([ahead, replay, learner], True)
        both = 1 / (forward + inserting + learning)
        return Measured([games, Stage("device", both, f"{ahead.how}, and {learner.how}", _FEWER_UPDATES)], False)
    if kind == "local":
        there = "rollout=ray, which plays on the other CPUs"
        return Measured([Stage("rollout", 1 / playing, "in the learner's process", there), replay, learner], True)
    return Measured([*_players(settings, playing, inserting + learning), replay, learner], False)


def _rollout(settings: TrainSettings, device: torch.device, seconds: float) -> tuple[Transitions, float]:
    """What a worker plays, and its seconds for a decision."""
    on_cpu = settings.rollout.kind == "ray" and settings.rollout.gpus_per_worker == 0
    worker = RolloutWorker(settings, torch.device("cpu") if on_cpu else device)
    request = RolloutRequest(0, settings.rollout.games_on(device.type == "cuda"), settings.exploration.end)
    transitions = worker.play(request).transitions
    assert isinstance(transitions, Transitions)  # a worker by itself makes arrays
    return transitions, seconds_of(lambda: worker.play(request), device, seconds) / len(transitions.action)


def _learner(
    settings: TrainSettings, game: Game, buffer: ReplayBuffer, device: torch.device, seconds: float
) -> tuple[Stage, float]:
    """The learner, and its seconds for a decision."""
    learner = Learner(build_network(game, settings), buffer, settings.learner, device, game.actions)
    update = seconds_of(lambda: learner.update_many(UPDATES_AT_ONCE), device, seconds) / UPDATES_AT_ONCE
    pays = settings.learner.batch_size / settings.learner.samples_per_insert
    how = f"{1 / update:,.0f} updates/s pay for {pays:,.0f} decisions each"
    return Stage("learner", pays / update, how, _FEWER_UPDATES), update / pays


def _players(settings: TrainSettings, playing: float, learning: float) -> Iterator[Stage]:
    """Ray workers, or threads of the learner's process, that compute values on CPUs; and the CPUs of this node."""
    cpus, rollout = resources.cpus(), settings.rollout
    if rollout.kind == "ray":
        count = rollout.workers or workers_here(settings) * rollout.nodes
        here = -(-count // rollout.nodes) / count
        yield Stage("workers", count / playing, f"{count} of {1 / playing:,.0f} each", "more rollout.workers")
    else:
        count, here = min(rollout.actor_threads or 1, cpus), 1.0  # more take turns on the same CPUs
        yield Stage(
            "games", count / playing, f"{count} threads of {1 / playing:,.0f} each", "more rollout.actor_threads"
        )
    together = cpus / (playing * here + learning)
    yield Stage("CPUs", together, f"{cpus} of this node, for playing and learning", "more CPUs, or fewer updates")


def _apart(
    settings: TrainSettings, game: Game, device: torch.device, transitions: Transitions, seconds: float
) -> tuple[Stage, float]:
    """Threads that play without a network, as beside a GPU; and its seconds for a row of a large forward pass."""
    seeds = stream(settings.seed, "doctor", 0, settings.rollout.games_on(gpu=True))
    seats = np.zeros((seeds.size, game.seats), np.uint8)

    def once() -> Transitions:
        recorder = TransitionRecorder(game)
        _, totals = play(game, seeds, [RandomPlayer()], seats, watch=recorder.watch, observed=True)
        return recorder.transitions(totals, settings.learner.gamma, settings.learner.n_step)

    threads = min(settings.rollout.actor_threads or 1, resources.cpus())
    rate = threads * len(once().action) / seconds_of(once, torch.device("cpu"), seconds)
    network = inference_network(game, settings, device)
    words = torch.from_numpy(np.resize(transitions.observation, (_ROWS, game.words)).view(np.int64)).to(device)
    with torch.inference_mode():
        forward = seconds_of(lambda: network(words), device, seconds) / _ROWS
    return Stage(
        "games", rate, f"{threads} threads, without the network", "more rollout.actor_threads and CPUs"
    ), forward


def seconds_of(function: Callable[[], object], device: torch.device, seconds: float) -> float:
    """Mean seconds of a call, after a first one, with what it leaves the device to do."""
    function()
    started = _now(device)
    calls, end = 0, started + seconds
    while time.perf_counter() < end:
        function()
        calls += 1
    return (_now(device) - started) / calls


def _now(device: torch.device) -> float:
    """The clock once the device has done all that it was given: CUDA's calls return before their work is done."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    return time.perf_counter()


def screen(measured: Measured) -> Iterator[Table | str]:
    """The stages, and the line that names the one that limits the run."""
    table = Table("stage", "decisions/s", "busy", "how", "", title="what each stage could do by itself")
    for stage in measured.stages:
        mark = "limits" if stage is measured.limit else ""
        table.add_row(stage.name, f"{stage.decisions:,.0f}", f"{measured.busy(stage):.0%}", stage.how, mark)
    yield table
    yield measured.verdict()


def in_words(decisions: float) -> str:
    """1.6 million; below 100,000 the number itself."""
    return f"{decisions / 1e6:.1f} million" if decisions >= 100_000 else f"{decisions:,.0f}"
