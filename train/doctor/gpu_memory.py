"""Whether a GPU has room for a run, before anything is allocated there."""

from __future__ import annotations

import torch

from cards.compiled.bits import WORD
from cards.game import Game
from command.settings.checks import SettingsError
from train.dqn.replay.buffer import ReplayBuffer
from train.settings.dqn import MOST_DECISIONS, TrainSettings

GB = 10**9
_WORKSPACE = 32 * 2**20  # of cuBLAS, for each stream
_LIBRARIES = GB  # what PyTorch and its libraries take by themselves
_CPU = torch.device("cpu")


def check_gpu_memory(settings: TrainSettings, free: int, device: str) -> None:
    """Raise SettingsError, naming the key to lower, if the run will not fit into the `free` bytes of the GPU.

    An estimate: of the buffer exactly, of the rest what its greatest tensors take.
    """
    game = settings.load_game()
    rollout, capacity = settings.rollout, settings.replay.capacity
    blocks = (rollout.actor_threads or 1) * block_bytes(game, settings) if rollout.kind in ("threads", "device") else 0
    rest = blocks + learner_bytes(game, settings) + _LIBRARIES
    each = buffer_bytes(game, settings)
    if capacity * each + rest <= free:
        return
    has = f"{device} has {free / GB:.1f} GB free"
    taken = f"about {rest / GB:.1f} GB ({blocks / GB:.1f} GB of them for blocks of games)"
    room = int((free - rest) / each)
    if room < settings.learner.batch_size:
        lower = "rollout.games or rollout.actor_threads" if blocks > rest / 2 else "learner.batch_size"
        raise SettingsError(lower, f"learning and playing take {taken}, but {has}", "lower it, or say device=cpu")
    problem = f"{capacity:,} transitions take {capacity * each / GB:.1f} GB, all else {taken}, but {has}"
    raise SettingsError("replay.capacity", problem, f"say replay.capacity={two_digits(room)}")


def two_digits(number: int) -> int:
    """The number rounded down to two digits, as a person would say it."""
    return number - number % 10 ** max(0, len(str(number)) - 2)


def buffer_bytes(game: Game, settings: TrainSettings) -> float:
    """Bytes of the replay buffer for each transition."""
    small, large = (ReplayBuffer(rows, game.words, _CPU, 0, settings.replay.exponent).nbytes for rows in (1024, 2048))
    return (large - small) / 1024


def block_bytes(game: Game, settings: TrainSettings) -> int:
    """Bytes that one block of games takes: its rounds, as they came and in a row, a forward pass, cuBLAS."""
    games = settings.rollout.games_on(gpu=True)
    return games * (2 * MOST_DECISIONS * 8 * (game.words + 2) + _forward_bytes(game, settings)) + _WORKSPACE


def learner_bytes(game: Game, settings: TrainSettings) -> int:
    """Bytes of an update: the forward passes of both networks, and as much again for the gradients."""
    return 4 * settings.learner.batch_size * _forward_bytes(game, settings)


def _forward_bytes(game: Game, settings: TrainSettings) -> int:
    """Of one row: each bit as two words while it is unpacked, and two numbers for each unit of the network.

    A symmetric network has its units once for every part, and for each of them its bits once more.
    """
    parts = game.symmetry.parts if settings.network.symmetric and game.symmetry is not None else 1
    copies = parts if parts > 1 else 0
    return 2 * 8 * WORD * game.words * (1 + copies) + unit_bytes(game, settings)


def unit_bytes(game: Game, settings: TrainSettings) -> int:
    """Bytes of what the units of the network hold of one row."""
    parts = game.symmetry.parts if settings.network.symmetric and game.symmetry is not None else 1
    return 2 * 4 * parts * sum(settings.network.hidden)
