"""Whether a job has enough memory for a learner on CPUs, before anything is allocated."""

from __future__ import annotations

import os
from itertools import pairwise

from cards.game import Game
from command.settings.checks import SettingsError
from train.doctor.gpu_memory import GB, buffer_bytes, two_digits, unit_bytes
from train.run.metrics import resources
from train.settings.dqn import MOST_DECISIONS, TrainSettings

CHECKPOINT_SHARE = 0.3  # of the buffer, while a checkpoint is written or read: `make bench`, checkpoint_memory
_PROCESS = 256 * 2**20  # Python, PyTorch and compiled games
_COPIES = 5  # of the weights: online and target network, gradient, two moments of Adam


def check_job_memory(settings: TrainSettings, limit: int) -> None:
    """Raise SettingsError, naming the key to lower, if the learner's process needs more than `limit` bytes.

    Each need is what is allocated at least, once the replay buffer is as full as it may become.
    """
    game = settings.load_game()
    each = buffer_bytes(game, settings) * (1 + CHECKPOINT_SHARE)
    rows = _rows(settings)
    needs = {
        "replay.capacity": rows * each,
        "learner.batch_size": 2.0 * settings.learner.batch_size * (unit_bytes(game, settings) + 16 * game.words),
        "network.hidden": 4.0 * _COPIES * sum(one * other for one, other in pairwise(settings.network.hidden)),
        "rollout.games": float(_games(settings) * _game_bytes(game)),
    }
    if sum(needs.values()) + _PROCESS <= limit:
        return
    key = max(needs, key=lambda name: needs[name])
    rest = sum(needs.values()) + _PROCESS - needs[key]
    has = f"all else at least {rest / GB:.1f} GB, but this job has {limit / GB:.1f} GB"
    if key != "replay.capacity":
        raise SettingsError(key, f"takes at least {needs[key] / GB:.1f} GB, {has}", "lower it")
    room = max(0, int((limit - rest) / each))
    problem = f"{rows:,} transitions and their checkpoint take {needs[key] / GB:.1f} GB, {has}"
    less = f"say replay.capacity={two_digits(room)}" if room >= settings.learner.batch_size else "lower it"
    raise SettingsError(key, problem, f"{less}, or ask for more memory")


def _rows(settings: TrainSettings) -> int:
    """Transitions that the buffer may come to hold: rows that are never written take no memory."""
    if settings.episodes is None:
        return settings.replay.capacity
    return min(settings.replay.capacity, settings.episodes * MOST_DECISIONS)


def _games(settings: TrainSettings) -> int:
    """Games that are played at a time on this node, at least."""
    rollout = settings.rollout
    elsewhere = rollout.kind == "ray" and (rollout.nodes > 1 or "RAY_ADDRESS" in os.environ)
    if elsewhere:
        return 0
    blocks = rollout.actor_threads_on(False, resources.cpus() - settings.learner.cpu_threads)
    return rollout.games_on(gpu=False) * (blocks if rollout.kind == "threads" else 1)


def _game_bytes(game: Game) -> int:
    """Bytes of a game's state, and of one decision: as it came and in a row."""
    return game.dtype.itemsize + 16 * (game.words + 2)
