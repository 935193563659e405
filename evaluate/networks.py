"""The networks of checkpoints, as players."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from cards.game import Game
from command.checks import SettingsError
from train.dqn.network import NetworkPlayer
from train.dqn.rollout import acting_network
from train.run.checkpoint import CheckpointError
from train.settings.dqn import TrainSettings
from train.settings.run import RunSettings
from train.settings.saved import other_keys, settings_of_checkpoint

log = logging.getLogger("evaluate")


def load_network(
    game: Game, path: Path, state: dict[str, Any], device: torch.device, key: str = "players"
) -> tuple[NetworkPlayer, TrainSettings]:
    """The player of a checkpoint's network, and the settings that it was trained under.

    Raises CheckpointError when it holds none, SettingsError naming `key` when it is one for another game.
    """
    try:
        settings = settings_of_checkpoint(TrainSettings, state["settings"] | {"device": "cpu"})
        weights = state["acting"]
    except (KeyError, TypeError, SettingsError) as error:
        raise CheckpointError(f"{path}: holds no network that can play ({error})") from None
    if keys := other_keys(TrainSettings, state["settings"]):
        log.info("%s: %s", path, keys)
    check_game(game, settings, path, key)
    network = acting_network(game, settings, device)
    try:
        network.load_state_dict(weights)
    except (RuntimeError, AttributeError, TypeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise CheckpointError(f"{path}: its weights do not fit the network of its settings ({reason})") from None
    return NetworkPlayer(network), settings


def check_game(game: Game, settings: RunSettings, path: Path, key: str = "players") -> None:
    """Raise SettingsError naming `key` when a run was for another game, or other options of it."""
    if settings.game_name != game.name:
        raise SettingsError(f"{key}: {path} plays {settings.game_name}, not {game.name}; say game={settings.game_name}")
    trained = settings.load_game().options
    if trained != game.options:
        raise SettingsError(f"{key}: {path} was trained with {trained}, not {game.options}; give the same game options")
