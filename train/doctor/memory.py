"""Checks that a run fits into the memory of a GPU or a job, before anything is allocated there."""

import os
from contextlib import nullcontext

import torch

from busso.base import system
from busso.command.settings.checks import SettingsError
from busso.train.learner.replay_buffer import row_bytes
from busso.train.network.build import build_network
from busso.train.network.q_network import DenseNetwork
from busso.train.rollout.transitions import transitions_for
from busso.train.settings.dqn import MOST_DECISIONS, TargetNetwork, TrainSettings

GB = 10**9
# Replay buffers in the memory of the learner's node: the buffer, and its copy while a checkpoint is written. Also two
# with a GPU: a resuming start holds the file and its content.
BUFFERS = 2
_GPU_RESERVE = 2 * GB  # for PyTorch and its libraries, weights and updates
_PROCESS = 256 * 2**20  # Python, PyTorch and compiled games
_COPIES = 4  # of the weights: online network, gradient, two Adam moments


def buffer_bytes(settings: TrainSettings) -> int:
    """Return the replay buffer's bytes per transition."""
    return row_bytes(transitions_for(settings.target), settings.load_game().words)


def check_gpu_memory(settings: TrainSettings, free: int, device: str) -> None:
    """Raise SettingsError unless the replay buffer and a reserve fit into the GPU's `free` bytes.

    The reserve is 2 GB, plus 1 GB of libraries for each Ray worker that may share the GPU.
    """
    each, rows, share = buffer_bytes(settings), settings.replay.capacity, settings.rollout.gpus_per_worker
    reserve = _GPU_RESERVE + (GB * min(settings.rollout.workers or system.cpus(), int(1 / share)) if share else 0)
    if rows * each + reserve <= free:
        return
    has = f"{device} has {free / GB:.1f} GB free, {reserve / GB:.0f} GB of them reserved"
    problem = f"{rows:,} transitions take {rows * each / GB:.1f} GB, but {has}"
    room = int((free - reserve) / each)
    fits = f"use replay.capacity={_two_digits(room)}" if room >= settings.learner.batch_size else "use device=cpu"
    raise SettingsError("replay.capacity", problem, fits)


def check_job_memory(settings: TrainSettings, limit: int, on_gpu: bool = False) -> None:
    """Raise SettingsError, naming the key to lower, if a learner needs more than `limit` bytes of main memory.

    Each need is a lower bound, with the replay buffer as full as it can become.
    """
    game, batch = settings.load_game(), settings.learner.batch_size
    each, rows = buffer_bytes(settings) * BUFFERS, _rows(settings)
    needs = {
        "replay.capacity": rows * each,
        "rollout.games": float(_games(settings) * (game.dtype.itemsize + 16 * (game.words + 2))),
        **({} if on_gpu else _needs_of_updates(settings)),
    }
    if sum(needs.values()) + _PROCESS <= limit:
        return
    key = max(needs, key=lambda name: needs[name])
    rest = sum(needs.values()) + _PROCESS - needs[key]
    has = f"everything else at least {rest / GB:.1f} GB, but this job has {limit / GB:.1f} GB"
    if key != "replay.capacity":
        raise SettingsError(key, f"takes at least {needs[key] / GB:.1f} GB, {has}", "lower it")
    room = int((limit - rest) / each)
    what = f"checkpoints of {rows:,} transitions" if on_gpu else f"{rows:,} transitions and their checkpoint"
    problem = f"{what} take {needs[key] / GB:.1f} GB, {has}"
    less = f"use replay.capacity={_two_digits(room)}" if room >= batch else "lower it"
    raise SettingsError(key, problem, f"{less}, or request more memory")


def _needs_of_updates(settings: TrainSettings) -> dict[str, float]:
    """Return the bytes needed by a learner on CPUs, by the key to lower."""
    game, own = settings.load_game(), settings.network.module is not None
    # Build it without weights, except the user's own: it was built before, and may not support a meta device.
    with nullcontext() if own else torch.device("meta"):
        network = build_network(game, settings)
    copies = _COPIES + isinstance(settings.target, TargetNetwork)
    parts = network.input.parts if isinstance(network, DenseNetwork) else 0  # outputs of other layers are unknown
    units = 4 * parts * sum(settings.network.hidden)  # bytes of the layers' outputs per row
    return {
        "learner.batch_size": 2.0 * settings.learner.batch_size * (2 * units + 16 * game.words),  # including gradients
        "network" if own else "network.hidden": 4.0 * copies * sum(each.numel() for each in network.parameters()),
    }


def _two_digits(number: int) -> int:
    """Round down to two significant digits."""
    return number - number % 10 ** max(0, len(str(number)) - 2)


def _rows(settings: TrainSettings) -> int:
    """Return the maximum transitions in the buffer: rows never written take no memory."""
    if settings.episodes is None:
        return settings.replay.capacity
    return min(settings.replay.capacity, settings.episodes * MOST_DECISIONS)


def _games(settings: TrainSettings) -> int:
    """Return a lower bound of the games played at a time on this node."""
    rollout = settings.rollout
    elsewhere = rollout.kind == "ray" and (rollout.nodes > 1 or "RAY_ADDRESS" in os.environ)
    return 0 if elsewhere else rollout.games
