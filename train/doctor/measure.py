"""What each stage of a run can do on this machine, measured for a second each, and what comes of it end to end."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from rich.table import Table

from cards.compiled.splitmix import stream
from cards.game import Game
from cards.play import RandomPlayer, play
from train.doctor.throughput_model import NETWORK_BYTES, Load, Prediction, Speeds, Stage, flops, predict, stages_of
from train.dqn.learner.learner import Learner
from train.dqn.network.build import acting_network, build_network
from train.dqn.network.first_layer import FirstLayer
from train.dqn.replay.transitions import Recorder, Transitions
from train.dqn.rollout.request import RolloutRequest
from train.dqn.rollout.worker import RolloutWorker, build_replay
from train.dqn.trainer import UPDATES_AT_ONCE
from train.run.device import choose_device
from train.run.metrics import resources
from train.settings.dqn import TrainSettings

_SECONDS = 1.5  # of measuring, for each stage
_ROWS = 16_384  # of a large forward pass, and games of a block
_UPLOAD = 32 * resources.MIB
_LINKS = Path("/sys/class/net")
_MORE = (10, 100, 1000)  # workers of the table


def workers_here(settings: TrainSettings) -> int:
    """Ray workers on this node; 0 where the learner's process plays."""
    if settings.rollout.kind != "ray":
        return 0
    return settings.rollout.workers or max(1, resources.cpus() - settings.learner.threads)


def counts_this_node_alone(settings: TrainSettings) -> bool:
    """Whether the run takes as many workers as a cluster has CPUs, of which only those of this node are known here."""
    rollout = settings.rollout
    return rollout.kind == "ray" and not rollout.workers and bool(os.environ.get("RAY_ADDRESS"))


@dataclass(frozen=True)
class Measured:
    """What a run asks for, and what this machine takes for it."""

    kind: str
    load: Load
    speeds: Speeds
    network: float  # bytes/s to other nodes
    flops: float  # of the forward pass of a row

    def predict(self, **changes: int) -> Prediction:
        """End to end, with some of the load changed."""
        return predict(self.kind, replace(self.load, **changes), self.speeds, network=self.network)

    def stages(self) -> list[Stage]:
        """The stages of the run as it is set."""
        return stages_of(self.kind, self.load, self.speeds, network=self.network)


def measure(settings: TrainSettings, seconds: float | None = None) -> Measured:
    """Measure each stage by itself for a second or two, or for so many, in this process."""
    kind, device, game = settings.rollout.kind, choose_device(settings.device), settings.load_game()
    torch.set_num_threads(settings.rollout.torch_threads)
    on_cpu = kind == "ray" and settings.rollout.gpus_per_worker == 0
    worker = RolloutWorker(settings, torch.device("cpu") if on_cpu else device)
    request = RolloutRequest(0, settings.rollout.games_on(device.type == "cuda"), settings.exploration.end)
    transitions = worker.play(request).transitions
    assert isinstance(transitions, Transitions)  # a worker by itself makes arrays
    decisions = len(transitions.action)
    playing = _seconds(lambda: worker.play(request), device, seconds) / decisions
    buffer = build_replay(game, settings, device)
    inserting = _seconds(lambda: buffer.add(transitions), device, seconds) / decisions
    torch.set_num_threads(settings.learner.threads)
    learner = Learner(build_network(game, settings), buffer, settings.learner, device, game.actions)
    FirstLayer(settings, game, learner).settle()
    update = _seconds(lambda: learner.update_many(UPDATES_AT_ONCE), device, seconds) / UPDATES_AT_ONCE
    speeds = Speeds(playing, inserting, update)
    if device.type == "cuda" and kind in ("threads", "device"):
        speeds = _apart(settings, game, device, speeds)
    operations = flops(learner.online)
    return Measured(kind, _load(settings, learner, transitions), speeds, link_bytes(), operations)


def _apart(settings: TrainSettings, game: Game, device: torch.device, speeds: Speeds) -> Speeds:
    """Besides: games on one thread without the network, forward passes over large batches, and the link to the GPU."""
    seeds = stream(settings.seed, "doctor", 0, settings.rollout.games_on(gpu=True))
    seats = np.zeros((seeds.size, game.seats), np.uint8)

    def once() -> Transitions:
        recorder = Recorder(game)
        _, totals = play(game, seeds, [RandomPlayer()], seats, watch=recorder.watch, observed=True)
        return recorder.transitions(totals, settings.learner.gamma, settings.learner.n_step)

    transitions = once()
    # Those of kind `device` are played on the GPU, which is not measured here.
    games = _seconds(once, torch.device("cpu")) / len(transitions.action) if settings.rollout.kind == "threads" else 0.0
    network = acting_network(game, settings, device)
    rows = np.resize(transitions.observation, (_ROWS, game.words))
    words = torch.from_numpy(rows.view(np.int64)).to(device)
    with torch.inference_mode():
        forward = _seconds(lambda: network(words), device) / _ROWS
    return replace(speeds, games=games, forward=forward, upload=_upload_bytes(device))


def _upload_bytes(device: torch.device) -> float:
    """Bytes a second from pinned memory to the device; 0 where it is the CPU."""
    if device.type == "cpu":
        return 0.0
    pinned = torch.empty(_UPLOAD, dtype=torch.uint8).pin_memory()
    there = torch.empty_like(pinned, device=device)
    return _UPLOAD / _seconds(lambda: there.copy_(pinned, non_blocking=True), device)


def _load(settings: TrainSettings, learner: Learner, transitions: Transitions) -> Load:
    nodes = settings.rollout.nodes
    here = max(1, workers_here(settings))
    return Load(
        workers=settings.rollout.workers or here * nodes,
        nodes=nodes,
        cpus=resources.cpus(),
        decisions=len(transitions.action),
        bytes=sum(column.nbytes for column in transitions) / len(transitions.action),
        batch_size=settings.learner.batch_size,
        samples_per_insert=settings.learner.samples_per_insert,
        publish_seconds=max(0.001, settings.rollout.publish_ms / 1000),
        weight_bytes=sum(tensor.nbytes for tensor in learner.acting_weights().values()),
        threads=settings.rollout.actor_threads or 1,
    )


def link_bytes() -> float:
    """Bytes a second of the fastest network link that says its speed; of 10 Gb/s where none does."""
    speeds = []
    for path in _LINKS.glob("*/speed") if _LINKS.is_dir() else []:
        try:
            speeds.append(int(path.read_text()))  # megabits
        except (OSError, ValueError):
            continue
    return max(speeds) * 1e6 / 8 if speeds and max(speeds) > 0 else NETWORK_BYTES


def _seconds(function: Callable[[], object], device: torch.device, seconds: float | None = None) -> float:
    """Mean seconds of a call, after a first one, with what it leaves the device to do."""
    function()
    started = _now(device)
    calls, end = 0, started + (_SECONDS if seconds is None else seconds)
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
    """The stages, the line that names the one that limits the run, and what more workers would bring."""
    found, stages = measured.predict(), measured.stages()
    table = Table("stage", "decisions/s", "busy", "how", "", title="what each stage could do by itself")
    for stage in stages:
        mark = "limits" if stage.name == found.limit.name else ""
        busy = f"{found.busy[stage.name]:.0%}"
        table.add_row(stage.name, _rate(stage.capacity), busy, _how(stage, measured), mark)
    yield table
    yield limited_by(found, stages, measured)
    yield wider(measured)


def _rate(decisions: float) -> str:
    return "-" if decisions == float("inf") else f"{decisions:,.0f}"


def _how(stage: Stage, measured: Measured) -> str:
    load, speeds = measured.load, measured.speeds
    pays = 1 / load.updates_per_decision
    forward = f"{measured.flops / speeds.forward / 1e12:.2g} TFLOP/s" if speeds.forward else "?"
    texts = {
        "workers": f"{load.workers} of {1 / speeds.playing:,.0f} each, less what Ray takes",
        "rollout": "in the learner's process",
        "replay": "written to the buffer",
        "learner": f"{1 / speeds.update:,.0f} updates/s, {pays:,.0f} decisions each",
        "driver": f"messages of {load.decisions:,} decisions",
        "object store": f"{load.bytes:.0f} bytes a decision",
        "network": f"{measured.network / 1e6:,.0f} MB/s to other nodes",
        "CPUs": f"{load.cpus} of each node",
        "games": _how_games(measured),
        "forward": f"batches of {_ROWS:,} rows, {forward}",
        "device": f"forward passes at {forward}, and {1 / speeds.update:,.0f} updates/s, {pays:,.0f} decisions each",
        "upload": f"{speeds.upload / 1e6:,.0f} MB/s",
    }
    return texts[stage.name]


def _how_games(measured: Measured) -> str:
    if measured.kind == "device":
        return "on the GPU: not measured"
    each = measured.speeds.games if measured.speeds.upload else measured.speeds.playing
    threads = measured.load.threads
    return f"{threads} threads of {_rate(1 / each)} each" if threads > 1 else "one thread"


def limited_by(found: Prediction, stages: list[Stage], measured: Measured) -> str:
    """One line: the stage that limits the run, what comes of it, what the next stage would do, and what to change."""
    limit, load = found.limit, measured.load
    if limit.name == "learner":
        updates = 1 / measured.speeds.update
        says = f"{updates:,.0f} updates/s pay for {in_words(updates / load.updates_per_decision)} decisions/s"
    else:
        says = f"at most {in_words(limit.capacity)} decisions/s"
    others = [stage for stage in stages if stage.name != limit.name]
    following = min(others, key=lambda stage: stage.capacity, default=limit)
    if found.decisions < limit.capacity:  # they take turns
        says += (
            f"; in turn with the others {in_words(found.decisions)}, {found.busy[limit.name]:.0%} of the time its own"
        )
    elif following.capacity < float("inf"):
        says += f"; the {following.name} would do {in_words(following.capacity)}"
    return f"limited by the {limit.name}: {says}: {limit.change}"


def in_words(decisions: float) -> str:
    """1.6 million; below 100,000 the number itself."""
    return f"{decisions / 1e6:.1f} million" if decisions >= 100_000 else f"{decisions:,.0f}"


def wider(measured: Measured) -> Table:
    """What more workers would give, each node as this one; of kind threads, more threads."""
    threads = measured.kind in ("threads", "device")
    title = "with more threads, on as many CPUs" if threads else "with more Ray workers, on nodes like this one"
    table = Table("threads" if threads else "workers", "nodes", "decisions/s", "limited by", "then", title=title)
    if threads:
        for count in (measured.load.threads * times for times in (1, 2, 4)):
            found = measured.predict(threads=count, cpus=max(count, measured.load.cpus))
            table.add_row(f"{count:,}", "1", in_words(found.decisions), found.limit.name, found.limit.change)
        return table
    by_ray = replace(measured, kind="ray")
    own = measured.load.workers
    for count in (own, *(more for more in _MORE if more > own)):
        nodes = measured.load.nodes if count == own else -(-(count + 1) // measured.load.cpus)
        found = by_ray.predict(workers=count, nodes=nodes)
        table.add_row(f"{count:,}", f"{nodes:,}", in_words(found.decisions), found.limit.name, found.limit.change)
    return table
