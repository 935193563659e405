"""Players by what a person calls them: a name, the folder of a run, a checkpoint or a policy in a table."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from cards.game import Game
from cards.play import Player, named_player
from cards.tables import PolicyFileError, TablePlayer, load_policy, numbering_of
from command.checks import SettingsError
from train.dqn.network import NetworkPlayer
from train.dqn.rollout import acting_network
from train.run import checkpoint
from train.run.checkpoint import CheckpointError
from train.settings.dqn import TrainSettings
from train.settings.run import RunSettings
from train.settings.saved import other_keys, settings_of_checkpoint
from train.tabular.errors import learned_policy
from train.tabular.trainer import load_model, table_of

log = logging.getLogger("evaluate")


def load_player(game: Game, spec: str, device: torch.device) -> Player:
    """The player that `spec` means, for this game.

    A run folder means its best network, else its newest, or the newest of its tables; a `.json` or `.npz` file is a
    policy in a table. Raises SettingsError for an unknown name or a network of another game, CheckpointError
    for a file that is missing or damaged.
    """
    if spec == "random" or spec in game.policies:
        return named_player(game, spec)
    path = Path(spec)
    tables = sorted(path.glob("policies/*.npz"), key=lambda table: (len(table.name), table.name))
    if tables or path.suffix in (".json", ".npz"):
        return _table_player(game, tables[-1] if tables else path)
    if spec and path.exists():
        path, state = checkpoint.load_named(path)
        return _learned_player(game, path, state) if holds_table(state) else load_network(game, path, state, device)[0]
    if "/" in spec or path.suffix or not spec:
        raise SettingsError(
            f"players: {spec or repr(spec)} does not exist; train it first, or name a run folder or a checkpoint"
        )
    known = ", ".join(["random", *game.policies])
    raise SettingsError(f"players: {game.name} has no player {spec!r}; it has {known}, or give a run folder")


def _table_player(game: Game, path: Path) -> TablePlayer:
    try:
        return TablePlayer(numbering_of(game).number, load_policy(path, game))
    except PolicyFileError as error:
        raise CheckpointError(str(error)) from None
    except ValueError as error:
        raise SettingsError(f"players: {path}: {error}") from None


def holds_table(state: Mapping[str, Any]) -> bool:
    """Whether a checkpoint is one of tabular learning of a small game."""
    return "visits" in state


def _learned_player(game: Game, path: Path, state: dict[str, Any]) -> TablePlayer:
    """The greedy policy of a table of action values; where no action was ever tried, the first legal one."""
    table = table_of(path, state)
    _check_game(game, table.settings, path)
    if table.settings.policy is not None:
        raise SettingsError(
            f"players: {path} holds what {table.settings.policy} is worth, learned by {table.settings.algo}, and no "
            "choice of actions; name a run of algo=q_learning, or a player that the game has by name"
        )
    model = load_model(table.settings)
    return TablePlayer(model.index, learned_policy(model.mdp, table.values))


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
    _check_game(game, settings, path, key)
    network = acting_network(game, settings, device)
    try:
        network.load_state_dict(weights)
    except (RuntimeError, AttributeError, TypeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise CheckpointError(f"{path}: its weights do not fit the network of its settings ({reason})") from None
    return NetworkPlayer(network), settings


def _check_game(game: Game, settings: RunSettings, path: Path, key: str = "players") -> None:
    if settings.game_name != game.name:
        raise SettingsError(f"{key}: {path} plays {settings.game_name}, not {game.name}; say game={settings.game_name}")
    trained = settings.load_game().options
    if trained != game.options:
        raise SettingsError(f"{key}: {path} was trained with {trained}, not {game.options}; give the same game options")
