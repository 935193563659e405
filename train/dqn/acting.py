"""Networks by the settings of their run: new ones, and those to play with."""

from __future__ import annotations

import torch

from cards.game import Game
from train.dqn import first_layer
from train.dqn.network import QNetwork
from train.dqn.precision import player_format
from train.dqn.symmetric_network import SymmetricNetwork
from train.settings.dqn import TrainSettings


def build_network(game: Game, settings: TrainSettings) -> QNetwork:
    """A Q-network for the game with the run's shape; its initial weights follow from the run's seed."""
    shape = settings.network
    bits = shape.inputs or game.bits
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        if shape.symmetric and game.symmetry is not None:
            return SymmetricNetwork(game.symmetry.first(bits), game.actions, shape.hidden, shape.dueling)
        return QNetwork(bits, game.actions, shape.hidden, shape.dueling)


def acting_network(game: Game, settings: TrainSettings, device: torch.device, measured: bool = False) -> QNetwork:
    """A network to play with, in the fastest number format of this device.

    `measured`: where `network.first_layer` does not name a kernel, the one that is faster now, else always the same.
    """
    network, dtype = build_network(game, settings).to(device), player_format(device)
    gathers = first_layer.named(settings.network.first_layer, device)
    if gathers is None:
        gathers = not measured or first_layer.for_playing(game, network, dtype).gathers
    return network.to_format(dtype, gathers).eval()
