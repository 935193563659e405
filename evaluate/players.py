"""Players by what a person calls them: a name, the folder of a run, a checkpoint or a policy in a table."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from cards.game import Game
from cards.kinds import Spec, parse_spec, player_names
from cards.play import Player, named_player
from cards.tables import PolicyFileError, TablePlayer, load_policy, numbering_of
from command.checks import SettingsError
from evaluate.networks import check_game, load_network
from evaluate.search.load import load_search
from train.run import checkpoint
from train.run.checkpoint import CheckpointError
from train.tabular.errors import learned_policy
from train.tabular.trainer import load_model, table_of

# Players made of a file, `name(PATH):key=value`, by name: (game, path, options, device) -> player. They raise
# ValueError for bad options, and CheckpointError for a file that is missing or damaged.
KINDS: dict[str, Callable[[Game, Path, Mapping[str, str], torch.device], Player]] = {"search": load_search}


def load_player(game: Game, spec: str, device: torch.device) -> Player:
    """The player that `spec` means, for this game.

    A name may have options, `monte_carlo:samples=100`, and a file, `search(runs/tressette/default):samples=100`.
    A run folder means its best network, else its newest, or the newest of its tables; a `.json` or `.npz` file is a
    policy in a table. Raises SettingsError for an unknown name or a network of another game, CheckpointError
    for a file that is missing or damaged.
    """
    if spec in player_names(game):
        return named_player(game, spec)
    try:
        named = parse_spec(spec)
        if named is not None and named.name in KINDS:
            return _from_file(game, named, device)
        if named is not None and (named.options or named.argument is not None):
            return named_player(game, spec)
    except CheckpointError:
        raise
    except ValueError as error:
        raise SettingsError(f"players: {str(error).removeprefix('players: ')}") from None
    path = file_of(spec)
    if path is None:
        raise SettingsError(_no_player(game, spec))
    if path.suffix in (".json", ".npz"):
        return _table_player(game, path)
    path, state = checkpoint.load_named(path)
    return _learned_player(game, path, state) if holds_table(state) else load_network(game, path, state, device)[0]


def _from_file(game: Game, spec: Spec, device: torch.device) -> Player:
    if not spec.argument:
        raise SettingsError(f"{spec}: {spec.name} needs a run, as in {spec.name}(runs/{game.name}/default)")
    return KINDS[spec.name](game, Path(spec.argument), spec.options, device)


def _no_player(game: Game, spec: str) -> str:
    if "/" in spec or Path(spec).suffix or not spec:
        return f"players: {spec or repr(spec)} does not exist; train it first, or name a run folder or a checkpoint"
    others = "".join(f", {name}(RUN)" for name in KINDS)
    known = ", ".join(player_names(game))
    return f"players: {game.name} has no player {spec!r}; it has {known}{others}, or give a run folder"


def file_of(spec: str) -> Path | None:
    """The file or run folder that a player is loaded from; None for one that needs none, or is not there.

    Of a folder with policies in tables it is the newest of these.
    """
    named = parse_spec(spec)
    text = spec if named is None or named.argument is None else named.argument
    path = Path(text)
    tables = sorted(path.glob("policies/*.npz"), key=lambda table: (len(table.name), table.name))
    if tables:
        return tables[-1]
    return path if text and (path.exists() or path.suffix in (".json", ".npz")) else None


def fingerprint(game: Game, spec: str) -> str:
    """What tells a player from another that has the same name: the sha256 of its file; "" for one without.

    Raises CheckpointError when no checkpoint of its run is whole.
    """
    named = parse_spec(spec)
    needs_none = named is not None and named.argument is None and named.name in player_names(game)
    path = None if needs_none or spec in player_names(game) else file_of(spec)
    if path is not None and path.is_dir():
        path, _ = checkpoint.load_named(path)
    return "" if path is None else hashlib.sha256(path.read_bytes()).hexdigest()


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
    check_game(game, table.settings, path)
    if table.settings.policy is not None:
        raise SettingsError(
            f"players: {path} holds what {table.settings.policy} is worth, learned by {table.settings.algo}, and no "
            "choice of actions; name a run of algo=q_learning, or a player that the game has by name"
        )
    model = load_model(table.settings)
    return TablePlayer(model.index, learned_policy(model.mdp, table.values))
