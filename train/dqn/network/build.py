"""Builds networks from the settings of their run: new ones, and trained ones for play."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from busso.cards.game import Game
from busso.train.dqn.network.equivariant_network import EquivariantNetwork
from busso.train.dqn.network.precision import fastest_format
from busso.train.dqn.network.q_network import QNetwork
from busso.train.run.checkpoint.checkpoint import CheckpointError
from busso.train.settings.dqn import TrainSettings

_FIRST = "input.weight"


def build_network(game: Game, settings: TrainSettings) -> QNetwork:
    """A Q-network for the game with the run's shape; its initial weights follow from the run's seed."""
    shape = settings.network
    bits = shape.inputs or game.bits
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        if shape.symmetric and game.symmetry is not None:
            return EquivariantNetwork(game.symmetry.first(bits), game.actions, shape.hidden, shape.dueling)
        return QNetwork(bits, game.actions, shape.hidden, shape.dueling)


def weights_for(new: QNetwork, learned: QNetwork, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights of a network that learned with other bits of an observation, for a new one of the same shape.

    Rows of the first layer for bits that are new are zeros; those for bits that it does not see are left out.
    """
    rows = {int(bit): row for row, bit in enumerate(learned.input.bit_of[0])}
    first = torch.zeros_like(new.input.weight)
    for row, bit in enumerate(new.input.bit_of[0]):
        if int(bit) in rows:
            first[row] = weights[_FIRST][rows[int(bit)]]
    return dict(weights) | {_FIRST: first}


def check_size(settings: TrainSettings, weights: Any, path: Path) -> None:
    """Raise CheckpointError where the settings of a file mean a network that its weights are too few for.

    Before it is built: two layers of 65,536 take 17 GB, however small the file.
    """
    hidden = settings.network.hidden
    least = hidden[0] + hidden[-1] + sum(before * after for before, after in pairwise(hidden))
    tensors = [each for each in weights.values() if isinstance(each, torch.Tensor)]
    pieces = {each.untyped_storage().data_ptr(): each for each in tensors}  # several may be the same one
    held = sum(each.untyped_storage().nbytes() // each.element_size() for each in pieces.values())
    if least > held or len(hidden) > len(tensors):
        problem = f"its settings mean a network of {least:,} weights and more, it holds {held:,}"
        raise CheckpointError(path, problem)


def inference_network(game: Game, settings: TrainSettings, device: torch.device) -> QNetwork:
    """A network to play with, in the fastest number format of this device."""
    return build_network(game, settings).to(device).to_format(fastest_format(device)).eval()
