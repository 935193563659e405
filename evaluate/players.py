"""Players of all kinds by their text, including learned tables; PyTorch is imported only for players in files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from busso.cards.game import Game
from busso.cards.players import make_player
from busso.command.settings.checks import SettingsError
from busso.train.dqn.players.resolve import ResolvedPlayer, resolve

if TYPE_CHECKING:
    import torch

    from busso.cards.play import Player
    from busso.cards.tables import TablePlayer


def cpu() -> torch.device:
    """Return the CPU device, for players that decide in few games at a time."""
    import torch

    return torch.device("cpu")


def load_player(game: Game, text: str, device: torch.device, key: str = "players") -> Player:
    """Load the player named by a text. Raises as `resolve` and `load_resolved`."""
    return load_resolved(game, resolve(game, text, key), lambda: device, key)


def load_resolved(
    game: Game, player: ResolvedPlayer, device: Callable[[], torch.device] = cpu, key: str = "players"
) -> Player:
    """Return a new player; `device`, where networks run, is called only for a player in a file.

    Raises SettingsError naming `key` for a file of another game, and CheckpointError for a damaged file.
    """
    if player.path is None:
        return make_player(game, player.name, player.kind, player.options)
    from busso.train.dqn.players.load import load_player as load

    return load(game, player, device(), key, _learned_player)


def _learned_player(game: Game, path: Path, state: dict[str, Any]) -> TablePlayer:
    """Return the greedy player of a table of action values; it plays the first legal action in unvisited states."""
    from busso.cards.tables import TablePlayer
    from busso.train.dqn.players.load import check_game
    from busso.train.tabular.errors import learned_policy
    from busso.train.tabular.trainer import load_model, table_of

    table = table_of(path, state)
    check_game(game, table.settings, path)
    if table.settings.policy is not None:
        holds = f"{path} contains values of the policy {table.settings.policy}, learned by {table.settings.algo}"
        hint = "name a run of algo=q_learning or one of the named players"
        raise SettingsError("players", f"{holds} and does not choose actions", hint)
    model = load_model(table.settings)
    return TablePlayer(model.index, learned_policy(model.mdp, table.values))
