"""Whether a GPU has enough memory for a run, before anything is allocated there.

On the tests' pretended GPU these formulas gave 1.0 to 1.5 times the most bytes of tensors at a time. That GPU has
neither PyTorch's allocator nor the libraries; the memory for these is an estimate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import torch

from cards.game import Game
from cards.play import Decisions, play
from command.settings.checks import SettingsError
from train.dqn.network.build import build_network
from train.dqn.network.cuda_graphs import SIZES
from train.dqn.players.load import player_of
from train.dqn.replay.buffer import ReplayBuffer
from train.settings.dqn import RolloutSettings, TrainSettings

GB = 10**9
WORKSPACE = 32 * 2**20  # of cuBLAS, for each stream
_LIBRARIES = GB  # what PyTorch and its libraries take by themselves
_COPIES = 8  # of the weights: three networks, gradient, two moments of Adam, and what is published or cast
_SAMPLE = 64  # games that say how long games are
_CPU = torch.device("cpu")


def check_gpu_memory(settings: TrainSettings, free: int, device: str) -> None:
    """Raise SettingsError, naming the key to lower, if the run will not fit into the `free` bytes of the GPU.

    The buffer is exact; `block_bytes` and `learner_bytes` say what the rest counts.
    """
    game = settings.load_game()
    rollout, capacity = settings.rollout, settings.replay.capacity
    blocks = float(_players_there(rollout))
    blocks *= block_bytes(game, settings) + (_LIBRARIES if rollout.kind == "ray" else 0)  # a process for each
    rest = blocks + learner_bytes(game, settings) + _LIBRARIES
    each = buffer_bytes(game, settings)
    if capacity * each + rest <= free:
        return
    has = f"{device} has {free / GB:.1f} GB free"
    taken = f"about {rest / GB:.1f} GB ({blocks / GB:.1f} GB of them for blocks of games)"
    room = int((free - rest) / each)
    if room < settings.learner.batch_size:
        players = "rollout.workers" if rollout.kind == "ray" else "rollout.games or rollout.actor_threads"
        lower = players if blocks > rest / 2 else "learner.batch_size"
        raise SettingsError(lower, f"learning and playing take {taken}, but {has}", "lower it, or say device=cpu")
    problem = f"{capacity:,} transitions take {capacity * each / GB:.1f} GB, all else {taken}, but {has}"
    raise SettingsError("replay.capacity", problem, f"say replay.capacity={two_digits(room)}")


def _players_there(rollout: RolloutSettings) -> int:
    """How many players compute values on the learner's GPU, of Ray's workers as many as have a share of one."""
    if rollout.kind == "ray" and rollout.gpus_per_worker:
        share = max(1, int(1 / rollout.gpus_per_worker))
        return min(share, rollout.workers or share)
    return (rollout.actor_threads or 1) if rollout.kind in ("threads", "device") else 0


def two_digits(number: int) -> int:
    """The number rounded down to two digits, as a person would say it."""
    return number - number % 10 ** max(0, len(str(number)) - 2)


def buffer_bytes(game: Game, settings: TrainSettings) -> float:
    """Bytes of the replay buffer for each transition."""
    small, large = (ReplayBuffer(rows, game.words, _CPU, 0, settings.replay.exponent).nbytes for rows in (1024, 2048))
    return (large - small) / 1024


def unit_bytes(game: Game, settings: TrainSettings) -> int:
    """Bytes of what the units of the network hold of one row, and of their gradients."""
    return 2 * 4 * sum(_shape(game, settings).units)


def block_bytes(game: Game, settings: TrainSettings) -> float:
    """Bytes that one block of games takes: its decisions as they came, then also as transitions, or a forward pass.

    A CUDA graph has the forward pass in memory of its own.
    """
    played, forward = _decisions(game) * buffer_bytes(game, settings), _forward_bytes(game, settings)
    more = played + forward if settings.learner.cuda_graphs else max(played, forward)
    return settings.rollout.games_on(gpu=True) * (played + more) + WORKSPACE


def learner_bytes(game: Game, settings: TrainSettings) -> float:
    """Bytes of weights, and of the tensors of an update, which each CUDA graph has for itself.

    A backward pass begins with what the first layer multiplied and what all layers gave, in the format of products;
    and with what the last layer was given, its gradient and the values of actions in float32. Besides, 0.45 of that.
    """
    learner = settings.learner
    shape = _shape(game, settings)
    size = 4 if learner.precision == "float32" else 2
    row = size * (shape.multiplied + sum(shape.units)) + 2 * 4 * shape.units[-1] + 16 * (game.words + game.actions)
    graphs = len(SIZES) if learner.cuda_graphs else 1
    return graphs * (1.45 * row * learner.batch_size + WORKSPACE) + _COPIES * 4 * shape.weights


def _decisions(game: Game) -> float:
    """Decisions of a game, where those play that make most of them: a network learns to play shorter or longer."""
    counts = []
    for name in ("random", *game.policies):
        counts.append(0)

        def watch(decisions: Decisions, *_: Any) -> None:
            counts[-1] += decisions.games.size

        player = player_of(game, name, _CPU, "rollout.games")
        play(
            game, np.arange(_SAMPLE, dtype=np.uint64), [player], np.zeros((_SAMPLE, game.seats), np.uint8), watch=watch
        )
    return max(counts) / _SAMPLE


def _forward_bytes(game: Game, settings: TrainSettings) -> int:
    """Bytes of one row while a network plays: all layers in 16 bits, the last in float32, and what follows it."""
    shape = _shape(game, settings)
    return 2 * (shape.multiplied + sum(shape.units)) + 2 * 4 * shape.units[-1]


class _Shape(NamedTuple):
    """What a network multiplies and gives for one row. A symmetric one does for each part what is alike of them."""

    multiplied: int  # numbers that its first layer is given
    units: list[int]  # of each hidden layer
    weights: int  # of all layers


def _shape(game: Game, settings: TrainSettings) -> _Shape:
    with torch.device("meta"):  # without its weights
        network = build_network(game, settings)
    parts = network.input.parts
    units = [parts * each for each in settings.network.hidden]
    return _Shape(parts * network.input.bits, units, sum(each.numel() for each in network.parameters()))
