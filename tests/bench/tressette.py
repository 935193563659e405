"""Figures of Tressette: rollouts, learner, checkpoints, and the default run on more CPUs."""

import copy
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import huber_loss
from torch.nn.utils import clip_grad_norm_
from torch.utils._python_dispatch import TorchDispatchMode

from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.play import play
from busso.cards.players import RandomPlayer
from busso.command.settings.compose import compose
from busso.train.doctor.measure import CPUS, Scaling
from busso.train.learner.learner import Learner
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.network.build import build_network, inference_network
from busso.train.network.matmul import linear
from busso.train.network.q_network import DenseNetwork, learner_format
from busso.train.rollout.backend import LocalBackend
from busso.train.rollout.request import Rollout, RolloutRequest
from busso.train.rollout.transitions import LambdaTransitions, NStepTransitions, TransitionRecorder, transitions_for
from busso.train.rollout.worker import RolloutWorker
from busso.train.run.background_writer import BackgroundWriter
from busso.train.run.folder import RunFolder
from busso.train.settings.dqn import LambdaReturns, Targets, TrainSettings
from busso.train.trainer import DqnTrainer
from busso.tressette import GAME
from tests.bench.timing import report, seconds
from tests.chips import emulated_chip
from tests.train.defaults import learner_settings, network_targets

CPU = torch.device("cpu")
ROWS = 1024
CHECKPOINTS = 10


def random_play() -> None:
    """Measure uniformly random legal play, batch 4096."""
    games = 4096
    seeds = stream(1, "bench", 0, games)
    seating = np.zeros((games, GAME.seats), np.uint8)
    player = RandomPlayer()
    (best,) = seconds(lambda: play(GAME, seeds, [player], seating))
    report("tressette_random_play", 40 * games / best / 1e6, "million moves/s", target=20)


def _settings(*overrides: str) -> TrainSettings:
    plain = ["network.symmetric=false", "network.hidden=[256,256]"]
    return compose(TrainSettings, "train", ["rollout=local", *plain, *overrides])


def rollout() -> None:
    """Compare a greedy rollout with bare forward passes of as many rows, and measure the share of rules and bits."""
    settings = _settings(f"rollout.games={ROWS}")
    worker = RolloutWorker(settings, CPU)
    request = RolloutRequest(0, ROWS, 0.0)
    asked = _rows_asked(worker, request)
    network = inference_network(GAME, settings, CPU)
    observations = _observations(ROWS)
    with torch.inference_mode():
        whole, bare, rules = seconds(
            lambda: worker.play(request), lambda: network(observations), _environment_round(ROWS)
        )
    moves = 40 * ROWS
    report("rollout_moves", moves / whole / 1e3, "thousand moves/s", decided_by_network=round(asked / moves, 3))
    report("rollout_over_forward", bare / ROWS * asked / whole, "ratio", target=0.85)
    report("environment_share", rules / ROWS * moves / whole, "share of rollout", target=0.08, direction="at most")


def _rows_asked(worker: RolloutWorker, request: RolloutRequest) -> int:
    """Return the number of rows in a request's forward passes."""
    rows = 0

    def count(module: torch.nn.Module, inputs: object, output: torch.Tensor) -> None:
        nonlocal rows
        rows += len(output)

    handle = worker.network.register_forward_hook(count)
    worker.play(request)
    handle.remove()
    return rows


def _environment_round(rows: int) -> Callable[[], None]:
    """Return a function that observes, masks, checks, applies and unpacks once in each of `rows` games."""
    states = GAME.deal(stream(1, "bench", 0, rows))
    scratch = np.empty((rows, GAME.bits), np.float32)
    actions = np.array([int(mask & -mask).bit_length() - 1 for mask in GAME.legal(states).tolist()], np.uint8)
    games = np.arange(rows)
    moved = np.empty_like(states)
    fresh = states.view(np.uint8)

    def once() -> None:
        unpack(GAME.observe(states, games), GAME.bits, scratch)
        GAME.check(states, games, actions, GAME.legal(states, games))
        moved.view(np.uint8)[:] = fresh  # not in rollouts; as bytes, because NumPy copies records by field
        GAME.loops.apply(moved, games, actions)
        GAME.over(states, games)

    return once


def _observations(rows: int) -> torch.Tensor:
    """Return packed observations of random play, from all stages of the game."""
    recorder = TransitionRecorder(GAME)
    games = -(-rows // 40)
    seating = np.zeros((games, GAME.seats), np.uint8)
    _, totals = play(GAME, stream(2, "bench", 0, games), [RandomPlayer()], seating, watch=recorder.watch, observed=True)
    words = recorder.transitions(totals, (1.0, 1.0), network_targets()).observation
    return torch.from_numpy(np.random.default_rng(1).permutation(words)[:rows].view(np.int64))


def filled_replay(rows: int, targets: Targets) -> ReplayBuffer:
    """Return a full buffer of observations of random play."""
    random = np.random.default_rng(1)
    words = np.resize(_observations(40_000).numpy().view(np.uint64), (rows, GAME.words))
    ones, action = np.ones(rows, np.float32), random.integers(0, 40, rows).astype(np.uint8)
    replay = ReplayBuffer(transitions_for(targets), rows, GAME.words, CPU, seed=1)
    if isinstance(targets, LambdaReturns):
        replay.add(LambdaTransitions(words, action, ones))
        return replay
    legal, successor = np.full(rows, (1 << 40) - 1, np.uint64), np.ones(rows, np.int32)
    successor[-1] = 0
    discount = np.float32(0.9) * successor.astype(np.float32)
    replay.add(NStepTransitions(words, legal, action, ones, discount, successor))
    return replay


def update() -> None:
    """Compare `Learner.update`, including sampling, with a bare update of the same network and format."""
    settings, targets = learner_settings(batch_size=512, ema_decay=0.0), network_targets(tau=0.0)
    replay = filled_replay(200_000, targets)
    learner = Learner(DenseNetwork(GAME.bits, GAME.actions, [256, 256], False), replay, settings, targets, CPU)
    whole, bare = seconds(learner.update, _bare_update(settings.batch_size))
    report("learner_updates", 1 / whole, "updates/s")
    report("update_over_bare_update", bare / whole, "ratio", target=0.85)


def recipe_updates() -> None:
    """Measure `Learner.update` of Tressette's default run: a symmetric network trained by Muon and Adam."""
    settings = compose(TrainSettings, "train", ["rollout=local"])
    replay = filled_replay(200_000, settings.target)
    network = build_network(GAME, settings)
    (best,) = seconds(Learner(network, replay, settings.learner, settings.target, CPU).update)
    report("recipe_updates", 1 / best, "updates/s")


def _bare_update(rows: int) -> Callable[[], None]:
    online = DenseNetwork(GAME.bits, GAME.actions, [256, 256], False)
    online.format = learner_format("auto", CPU)
    target, weights = copy.deepcopy(online), list(online.requires_grad_(True).parameters())
    optimizer = torch.optim.Adam(weights, lr=3e-4, fused=True)
    target.requires_grad_(False)
    x, y = _observations(2 * rows).split(rows)
    action, reward = torch.randint(40, (rows, 1)), torch.rand(rows)

    def step() -> None:
        with torch.no_grad():
            wanted = reward + 0.9 * target(y).amax(dim=1)
        optimizer.zero_grad()
        huber_loss(online(x).gather(1, action).squeeze(1), wanted).backward()  # type: ignore[no-untyped-call]
        clip_grad_norm_(weights, 10.0, foreach=True)
        optimizer.step()

    return step


class _Operations(TorchDispatchMode):
    """Counter of operations that write a tensor: one launch each on a GPU."""

    count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = function(*args, **(kwargs or {}))
        returned = [each.alias_info for each in function._schema.returns]
        views = any(alias is not None and not alias.is_write for alias in returned)
        if not views and not function.overloadpacket.__name__.startswith("empty"):
            self.count += 1
        return result


def update_operations() -> None:
    """Count the operations of PyTorch in an update."""
    settings, targets = learner_settings(batch_size=512), network_targets()
    network, replay = DenseNetwork(GAME.bits, GAME.actions, [256, 256], False), filled_replay(10_000, targets)
    learner = Learner(network, replay, settings, targets, CPU)
    learner.update()
    with _Operations() as operations:
        learner.update()
    report("update_operations", operations.count, "operations", direction="at most")


def kernels() -> None:
    """Measure a forward and backward pass on this CPU in each format and kernel."""
    x, weight, bias = torch.rand(512, 256), torch.rand(256, 256), torch.rand(256)

    def passes(chip: str, dtype: torch.dtype) -> Callable[[], None]:
        a, b, c = (tensor.to(dtype).requires_grad_() for tensor in (x, weight, bias))
        d = torch.ones_like(a)

        def once() -> None:
            with emulated_chip(chip):
                torch.autograd.grad(linear(a, b, c, relu=True), (a, b, c), d)

        return once

    operations = 3 * 2 * 512 * 256 * 256 / 1e9
    chips = {"float32 by MKL": "float32_pytorch", "float32 by oneDNN": "float32_one_dnn", "bfloat16": "bfloat16"}
    formats = {name: torch.bfloat16 if name == "bfloat16" else torch.float32 for name in chips}
    times = seconds(*(passes(chip, formats[name]) for name, chip in chips.items()))
    for name, best in zip(chips, times, strict=True):
        report("kernel", operations / best, "GFLOP/s", kernel=name)


def checkpoint_stop() -> None:
    """Measure the learner's pause for a checkpoint with the full buffer of Tressette's recipe.

    In CPU seconds, as in `seconds`, without the first pause, for which memory must be allocated. The ratio to
    a plain copy of the buffer's bytes does not depend on the machine's memory.
    """
    with tempfile.TemporaryDirectory() as runs:
        settings = compose(TrainSettings, "train", ["rollout=local", f"runs={runs}"])
        with RunFolder(settings) as folder:
            local = LocalBackend(settings, CPU)
            trainer = DqnTrainer(settings, folder, CPU, local, {})
            local.submit(RolloutRequest(0, 4096, 1.0))
            (rollout,) = local.ready(wait=True)
            while trainer.replay.size < settings.replay.capacity:
                trainer.replay.add(rollout.transitions)
            buffer, copy = np.ones((2, trainer.replay.nbytes), np.uint8)
            copying = float("inf")
            stops, writer = [], BackgroundWriter()
            for k in range(CHECKPOINTS):
                started = time.thread_time()
                writer.save(Path(runs) / f"episode_{k:012d}.pt", trainer.state_dict())
                stops.append(time.thread_time() - started)
                writer.wait()
                copying = min(copying, *seconds(lambda: np.copyto(copy, buffer), rounds=5, min_seconds=0.0))
    report("checkpoint_stop", max(stops[1:]), "s", target=0.1, direction="at most")
    report("checkpoint_stop_over_copy", min(stops) / copying, "ratio", direction="at most", copying=round(copying, 4))


def more_cpus() -> None:
    """Report decisions/s by number of CPUs, one of which learns; single-CPU rates are in CPU seconds, without Ray."""
    settings = compose(TrainSettings, "train", ["rollout=local"])
    learner, games = settings.learner, settings.rollout.games
    worker, starts = RolloutWorker(settings, CPU), count(0, games)
    updating = Learner(
        build_network(GAME, settings),
        filled_replay(200_000, settings.target),
        learner,
        settings.target,
        CPU,
    )

    def play() -> Rollout:
        return worker.play(RolloutRequest(next(starts), games, settings.exploration.end))

    first = play()
    playing, update = seconds(play, updating.update)
    rate, share = first.decisions / playing, len(first.transitions.action) / first.decisions
    decisions = learner.batch_size / learner.samples_per_insert / share
    report("recipe_decisions", rate / 1e3, "thousand decisions/s")
    scaling = Scaling(rate, 1 / update, decisions, learner.samples_floor)
    for cpus in CPUS:
        found = scaling.on(cpus)
        more = {"updates": round(found.updates, 1), "limit": found.limit, "enough": scaling.enough()}
        report("more_cpus", found.decisions / 1e3, "thousand decisions/s", cores=cpus, **more)


FIGURES = (random_play, kernels, rollout, update, recipe_updates, update_operations, checkpoint_stop, more_cpus)
