"""Players of all kinds by their text, including tables of tabular learning.

PyTorch is imported only for players that are made from a file.
"""

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
    """The device of players that are asked about few games."""
    import torch

    return torch.device("cpu")


def load_player(game: Game, text: str, device: torch.device, key: str = "players") -> Player:
    """The player that is meant by a text, see `resolve`. Raises as it, and as `load_resolved`."""
    return load_resolved(game, resolve(game, text, key), lambda: device, key)


def load_resolved(
    game: Game, player: ResolvedPlayer, device: Callable[[], torch.device] = cpu, key: str = "players"
) -> Player:
    """A new player; `device`, where a network plays, is asked for by those made of a file alone.

    Raises SettingsError naming `key` for a file of another game, and CheckpointError for one that is damaged.
    """
    if player.path is None:
        return make_player(game, player.name, player.kind, player.options)
    from busso.train.dqn.players.load import load_player as load

    return load(game, player, device(), key, _learned_player)


def _learned_player(game: Game, path: Path, state: dict[str, Any]) -> TablePlayer:
    """The greedy policy of a table of action values; where no action was ever tried, the first legal one."""
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
