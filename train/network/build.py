"""Construction of networks from the settings of their run: new ones, and trained ones for play."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from busso.base.own_files import OwnCodeError
from busso.cards.game import Game
from busso.command.settings.quoting import TYPED_NETWORK
from busso.train.network.own_network import LOSS, LOSSES, build_own, full_name, try_own
from busso.train.network.q_network import DenseNetwork, EquivariantNetwork, QNetwork, fastest_format
from busso.train.run.checkpoint import CheckpointError
from busso.train.settings.dqn import TrainSettings

_FIRST = "input.weight"


def build_network(game: Game, settings: TrainSettings) -> QNetwork:
    """Return a Q-network of the run's shape for the game, initialized from the run's seed."""
    shape = settings.network
    bits = shape.inputs or game.bits
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        if shape.module is not None:
            return build_own(game, shape.module, bits)
        if shape.symmetric and game.symmetry is not None:
            return EquivariantNetwork(game.symmetry.first(bits), game.actions, shape.hidden, shape.dueling)
        return DenseNetwork(bits, game.actions, shape.hidden, shape.dueling)


def with_tried_code(settings: TrainSettings) -> TrainSettings:
    """Return the settings with full names of the user's own network and loss, after a trial on a few observations.

    Raises SettingsError if one is not found, OwnCodeError for any error in its file.
    """
    network, learner, game = settings.network, settings.learner, settings.load_game()
    if network.module is not None:
        network = replace(network, module=full_name(network.module, TYPED_NETWORK))
    if learner.loss not in LOSSES:
        learner = replace(learner, loss=full_name(learner.loss, LOSS))
    settings = replace(settings, network=network, learner=learner)
    if network.module is not None or learner.loss not in LOSSES:
        try_own(build_network(game, settings), game.words, learner.loss)
    return settings


def weights_for(new: QNetwork, learned: QNetwork, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Convert the weights of a network trained on other observation bits for a new one of the same shape.

    First-layer rows of new bits are zeros; those of bits that the new network does not see are dropped.
    """
    assert isinstance(new, DenseNetwork) and isinstance(learned, DenseNetwork)  # the user's own are never converted
    _, rows, learned_rows = np.intersect1d(new.input.bit_of[0], learned.input.bit_of[0], return_indices=True)
    first = torch.zeros_like(new.input.weight)
    first[rows] = weights[_FIRST][learned_rows].to(first.dtype)
    return dict(weights) | {_FIRST: first}


def check_size(settings: TrainSettings, weights: Mapping[str, Any], path: Path) -> None:
    """Raise CheckpointError if a file's weights do not fit the network of its settings, before it takes any memory.

    Two layers of 65,536 take 17 GB, however small the file is.
    """
    with suppress(OwnCodeError), torch.device("meta"):  # it is reported when the network is built
        network = build_network(settings.load_game(), settings)
        wanted = {name: tuple(each.shape) for name, each in network.state_dict().items()}
        held = {name: tuple(each.shape) for name, each in weights.items() if isinstance(each, Tensor)}
        if wanted != held:
            name = min(wanted.items() ^ held.items(), key=str)[0]
            says = f"{name} is {wanted.get(name, 'none')}, but the file holds {held.get(name, 'none')}"
            raise CheckpointError(path, f"its weights do not match the network of its settings ({says})")


def inference_network(game: Game, settings: TrainSettings, device: torch.device) -> QNetwork:
    """Return a network for play, in the fastest number format of this device."""
    return build_network(game, settings).to(device).to_format(fastest_format(device)).eval()
