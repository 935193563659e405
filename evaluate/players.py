"""Players by what a person calls them: a name, the folder of a run, a checkpoint or a policy in a table."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import torch

from cards.game import Game
from cards.play import Player, named_player
from cards.tables import PolicyFileError, TablePlayer, load_policy, numbering_of
from train import checkpoint
from train.checkpoint import CheckpointError
from train.checks import SettingsError
from train.config import TrainSettings
from train.network import NetworkPlayer
from train.rollout import acting_network
from train.saved_settings import other_keys, settings_of_checkpoint

log = logging.getLogger("evaluate")


def load_player(game: Game, spec: str, device: torch.device) -> Player:
    """The player that `spec` means, for this game.

    A run folder means its best network, else its newest, or the newest of its policies in tables; a `.json` or `.npz`
    file is a policy in a table. Raises SettingsError for an unknown name or a network of another game, CheckpointError
    for a file that is missing or damaged.
    """
    if spec == "random" or spec in game.policies:
        return named_player(game, spec)
    path = Path(spec)
    tables = sorted(path.glob("policies/*.npz"), key=lambda table: (len(table.name), table.name))
    if tables or path.suffix in (".json", ".npz"):
        return _table_player(game, tables[-1] if tables else path)
    if spec and path.is_dir():
        return _network_player(game, *_newest_of_run(path), device)
    if path.is_file():
        return _network_player(game, path, checkpoint.load(path), device)
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


def _newest_of_run(run: Path) -> tuple[Path, dict[str, Any]]:
    """The checkpoint of a run to play with; says so when a better one is damaged."""
    found = checkpoint.load_best(run / "checkpoints")
    if found is None:
        raise CheckpointError(f"{run}: holds no checkpoint; train it first")
    for problem in found.problems.values():
        log.warning("%s; %s is used", problem, found.path)
    return found.path, found.state


def _network_player(game: Game, path: Path, state: dict[str, Any], device: torch.device) -> NetworkPlayer:
    try:
        settings = settings_of_checkpoint(TrainSettings, state["settings"] | {"device": "cpu"})
        weights = state["acting"]
    except (KeyError, TypeError, SettingsError) as error:
        raise CheckpointError(f"{path}: holds no network that can play ({error})") from None
    if keys := other_keys(TrainSettings, state["settings"]):
        log.info("%s: %s", path, keys)
    _check_game(game, settings, path)
    network = acting_network(game, settings, device)
    try:
        network.load_state_dict(weights)
    except (RuntimeError, AttributeError, TypeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise CheckpointError(f"{path}: its weights do not fit the network of its settings ({reason})") from None
    return NetworkPlayer(game, network)


def _check_game(game: Game, settings: TrainSettings, path: Path) -> None:
    if settings.game_name != game.name:
        raise SettingsError(
            f"players: {path} plays {settings.game_name}, not {game.name}; say game={settings.game_name}"
        )
    trained = settings.load_game().options
    if trained != game.options:
        raise SettingsError(
            f"players: {path} was trained with {trained}, not {game.options}; give the same game options"
        )
