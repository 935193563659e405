"""Players in files: networks, searches with a network, and tables; and the checks before they play."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from busso.base.errors import InputError
from busso.cards.game import Game
from busso.cards.packages import game_file, typed_game
from busso.cards.play import Player
from busso.cards.player_specs import TABLES, plays_as
from busso.cards.tables import PolicyFileError, TablePlayer, load_policy, numbering_of
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import settings_from_dict
from busso.command.settings.untrusted import known_games
from busso.train.network.build import build_network, check_size, inference_network, weights_for
from busso.train.network.q_network import NetworkPlayer
from busso.train.players import champion_file as champion
from busso.train.players.resolve import TRAINED, ResolvedPlayer, resolve
from busso.train.run import checkpoint
from busso.train.run.checkpoint import CheckpointError
from busso.train.run.folder import warn_of_changes
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.run import RunSettings


def load_from_file(game: Game, player: ResolvedPlayer, device: torch.device, key: str) -> Player:
    """Return a new player in a file; networks use `device`.

    Raises SettingsError naming `key` for a file of another game, CheckpointError for a damaged file.
    """
    assert player.path is not None
    if player.kind.of_network:
        return _with_network(game, player, device, key)
    if player.path.suffix in TABLES:
        return _table_player(game, player.path, key)
    if player.path.suffix == champion.SUFFIX:
        return load_champion(game, player.path, device, key)[0]
    path, state = checkpoint.load_named(player.path)
    if holds_table(state):
        return _learned_player(game, path, state, key)
    return load_network(game, path, state, device, key)[0]


def _with_network(game: Game, player: ResolvedPlayer, device: torch.device, key: str) -> Player:
    assert player.path is not None and player.kind.make is not None
    network, settings = load_trained(game, player.path, device, key)
    try:
        made: Player = player.kind.make(game, player.options, network, settings.reward_name(game), device.type != "cpu")
    except InputError as error:
        raise SettingsError(key, f"{player.path}: {error.problem}", error.hint) from None
    return made


def load_trained(
    game: Game, path: Path, device: torch.device, key: str = "players"
) -> tuple[NetworkPlayer, TrainSettings]:
    """Return the network of a run, checkpoint or champion, and its training settings."""
    if path.suffix == champion.SUFFIX:
        return load_champion(game, path, device, key)
    return load_network(game, *checkpoint.load_named(path), device, key)


def load_network(
    game: Game | None, path: Path, state: dict[str, Any], device: torch.device, key: str = "players"
) -> tuple[NetworkPlayer, TrainSettings]:
    """Return the player of a checkpoint's network and its training settings; `game` defaults to theirs.

    Raises CheckpointError if there is no network, SettingsError naming `key` if it is for another game.
    """
    saved, weights = state.get("settings"), state.get("acting")
    if not isinstance(saved, dict) or not isinstance(weights, dict):
        raise CheckpointError(path, "contains no network that can play")
    try:
        settings = settings_from_dict(TrainSettings, saved | {"device": "cpu"})
    except SettingsError as error:
        raise CheckpointError(path, f"contains no network that can play ({error})") from None
    game = game or settings.load_game()
    check_game(game, settings, path, key)
    warn_of_changes(path.parent.parent)
    check_size(settings, weights, path)
    return _network_player(game, settings, weights, path, device), settings


def load_champion(
    game: Game, path: Path, device: torch.device, key: str = "players"
) -> tuple[NetworkPlayer, TrainSettings]:
    """Return the player of a champion file, and its training settings."""
    found = champion.read(path)
    check_game(game, found.settings, path, key)
    return _network_player(game, found.settings, found.weights, path, device), found.settings


def _network_player(
    game: Game, settings: TrainSettings, weights: champion.Weights, path: Path, device: torch.device
) -> NetworkPlayer:
    # With other game options, an observation here may have more or fewer bits than in training.
    settings.network.inputs = inputs = settings.network.inputs or settings.load_game().bits
    of_busso = settings.network.module is None  # the user's own networks get zeros for missing bits
    here = replace(settings, network=replace(settings.network, inputs=min(inputs, game.bits) if of_busso else inputs))
    network = inference_network(game, here, device)
    if inputs > game.bits and of_busso:
        weights = weights_for(network, build_network(settings.load_game(), settings), weights)
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:  # of the user's own network, which may not be built without memory
        reason = str(error).splitlines()[-1].strip()
        raise CheckpointError(path, f"its weights do not match the network of its settings ({reason})") from None
    return NetworkPlayer(network)


def check_name(game: Game, settings: RunSettings, path: Path, key: str) -> None:
    """Raise SettingsError if a run was for another game."""
    if settings.game_name not in plays_as(game):
        name = settings.game_name
        typed = typed_game(name) if game_file(name) or name in known_games() else f"./{name}.py"
        raise SettingsError(key, f"{path} plays {name}, not {game.name}", f"use game={typed}")


def check_game(game: Game, settings: RunSettings, path: Path, key: str) -> None:
    """Raise SettingsError naming `key` if a run was for another game or incompatible game options."""
    check_name(game, settings, path, key)
    trained = settings.load_game().options
    if not game.suits_players_of(trained):
        raise SettingsError(key, f"{path} was trained with {trained}, not {game.options}", "give the same game options")


def holds_table(state: Mapping[str, Any]) -> bool:
    """Return whether a checkpoint is from tabular learning of a small game."""
    return "visits" in state


def _learned_player(game: Game, path: Path, state: dict[str, Any], key: str) -> TablePlayer:
    """Return the greedy player of a table of action values; it plays the first legal action in unvisited states."""
    from busso.train.tabular.algorithms import learned_policy
    from busso.train.tabular.trainer import load_model, table_of

    table = table_of(path, state)
    check_game(game, table.settings, path, key)
    if table.settings.policy is not None:
        holds = f"{path} contains values of the policy {table.settings.policy}, learned by {table.settings.algo}"
        hint = "name a run of algo=q_learning or one of the named players"
        raise SettingsError(key, f"{holds} and does not choose actions", hint)
    model = load_model(table.settings)
    return TablePlayer(model.index, learned_policy(model.mdp, table.values))


def _table_player(game: Game, path: Path, key: str) -> TablePlayer:
    try:
        return TablePlayer(numbering_of(game).number, load_policy(path, game))
    except PolicyFileError as error:
        raise CheckpointError.of(error, str(path)) from None
    except ValueError as error:
        raise SettingsError(key, InputError(path, error)) from None


def check_players(settings: TrainSettings) -> dict[str, str]:
    """Load all players in files of a run, and try those in Python files, before anything starts.

    Return the sha256 of each that it learns with, by name. Raises SettingsError naming the key for a player that is
    missing, for another game, named twice, or the run itself, and CheckpointError for a damaged file.
    """
    game, cpu, digests = settings.load_game(), torch.device("cpu"), dict[str, str]()
    for key, names in settings.players.items():
        called: dict[Path, str] = {}
        for name in names:
            player = resolve(game, name, key)
            if name in settings.learns_with and (player.path is not None or player.code is not None):
                digests[player.name] = player.sha256
            if player.path is None:
                continue
            loaded = load_from_file(game, player, cpu, key)
            assert player.file is not None
            file = player.file.resolve()
            if player.kind is TRAINED and isinstance(loaded, TablePlayer):
                raise SettingsError(key, f"{file} contains a table of {game.name}, which plays in tournaments only")
            if settings.folder.resolve() in file.parents:
                raise SettingsError(key, f"{name} is this run", "call the learning network `network`")
            if file in called:
                raise SettingsError(key, f"{called[file]} and {name} are the same player", "each once")
            called[file] = name
    return digests
