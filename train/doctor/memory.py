"""Whether a run fits into the memory of a GPU or of a job, before anything is allocated there."""

from __future__ import annotations

import os
from contextlib import nullcontext

import torch

from busso.command.settings.checks import SettingsError
from busso.train.dqn.network.build import build_network
from busso.train.dqn.replay.buffer import ReplayBuffer
from busso.train.run.metrics import resources
from busso.train.settings.dqn import MOST_DECISIONS, TrainSettings

GB = 10**9
CHECKPOINT_SHARE = 0.3  # of the buffer, while a checkpoint is written or read: `make bench`, checkpoint_memory
_GPU_RESERVE = 2 * GB  # for PyTorch and its libraries, weights and updates
_PROCESS = 256 * 2**20  # Python, PyTorch and compiled games
_COPIES = 5  # of the weights: online and target network, gradient, two moments of Adam


def buffer_bytes(settings: TrainSettings) -> float:
    """Bytes of the replay buffer for each transition."""
    words, cpu = settings.load_game().words, torch.device("cpu")
    small, large = (ReplayBuffer(rows, words, cpu, 0).nbytes for rows in (1024, 2048))
    return (large - small) / 1024


def check_gpu_memory(settings: TrainSettings, free: int, device: str) -> None:
    """Raise SettingsError unless the replay buffer and a reserve fit into the `free` bytes of the GPU.

    The reserve is 2 GB, and 1 GB for the libraries of each Ray worker that may share the GPU.
    """
    each, rows, share = buffer_bytes(settings), settings.replay.capacity, settings.rollout.gpus_per_worker
    reserve = _GPU_RESERVE + (GB * min(settings.rollout.workers or resources.cpus(), int(1 / share)) if share else 0)
    if rows * each + reserve <= free:
        return
    has = f"{device} has {free / GB:.1f} GB free, {reserve / GB:.0f} of them for all else"
    problem = f"{rows:,} transitions take {rows * each / GB:.1f} GB, but {has}"
    room = int((free - reserve) / each)
    fits = f"say replay.capacity={_two_digits(room)}" if room >= settings.learner.batch_size else "say device=cpu"
    raise SettingsError("replay.capacity", problem, fits)


def check_job_memory(settings: TrainSettings, limit: int) -> None:
    """Raise SettingsError, naming the key to lower, if a learner on CPUs needs more than `limit` bytes.

    Each need is what is allocated at least, once the replay buffer is as full as it may become.
    """
    game, batch = settings.load_game(), settings.learner.batch_size
    own = settings.network.module is not None  # which was built before, and may do what a meta device cannot
    with nullcontext() if own else torch.device("meta"):  # without its weights
        network = build_network(game, settings)
    each, rows = buffer_bytes(settings) * (1 + CHECKPOINT_SHARE), _rows(settings)
    parts = 0 if own else network.input.parts  # what its layers give is not known
    units = 4 * parts * sum(settings.network.hidden)  # bytes of what they give for one row
    needs = {
        "replay.capacity": rows * each,
        "learner.batch_size": 2.0 * batch * (2 * units + 16 * game.words),  # with gradients
        "network" if own else "network.hidden": 4.0 * _COPIES * sum(each.numel() for each in network.parameters()),
        "rollout.games": float(_games(settings) * (game.dtype.itemsize + 16 * (game.words + 2))),
    }
    if sum(needs.values()) + _PROCESS <= limit:
        return
    key = max(needs, key=lambda name: needs[name])
    rest = sum(needs.values()) + _PROCESS - needs[key]
    has = f"all else at least {rest / GB:.1f} GB, but this job has {limit / GB:.1f} GB"
    if key != "replay.capacity":
        raise SettingsError(key, f"takes at least {needs[key] / GB:.1f} GB, {has}", "lower it")
    room = int((limit - rest) / each)
    problem = f"{rows:,} transitions and their checkpoint take {needs[key] / GB:.1f} GB, {has}"
    less = f"say replay.capacity={_two_digits(room)}" if room >= batch else "lower it"
    raise SettingsError(key, problem, f"{less}, or ask for more memory")


def _two_digits(number: int) -> int:
    """The number rounded down to two digits, as a person would say it."""
    return number - number % 10 ** max(0, len(str(number)) - 2)


def _rows(settings: TrainSettings) -> int:
    """Transitions that the buffer may come to hold: rows that are never written take no memory."""
    if settings.episodes is None:
        return settings.replay.capacity
    return min(settings.replay.capacity, settings.episodes * MOST_DECISIONS)


def _games(settings: TrainSettings) -> int:
    """Games that are played at a time on this node, at least."""
    rollout = settings.rollout
    elsewhere = rollout.kind == "ray" and (rollout.nodes > 1 or "RAY_ADDRESS" in os.environ)
    return 0 if elsewhere else rollout.games
