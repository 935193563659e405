"""Players of all kinds by their text; PyTorch is imported only for players in files."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from busso.cards.game import Game
from busso.cards.players import make_player
from busso.train.players.resolve import ResolvedPlayer, resolve

if TYPE_CHECKING:
    import torch

    from busso.cards.play import Player


def cpu() -> torch.device:
    """Return the CPU device, for players that decide in few games at a time."""
    import torch

    return torch.device("cpu")


def player_from_text(game: Game, text: str, device: torch.device, key: str = "players") -> Player:
    """Return the player that a text names; `key` is the setting with the text. Raises as `resolve` and `load_resolved`.

    A player in a Python file was tried by the command that started this process.
    """
    return load_resolved(game, resolve(game, text, key, tried=False), lambda: device, key)


def load_resolved(
    game: Game, player: ResolvedPlayer, device: Callable[[], torch.device] = cpu, key: str = "players"
) -> Player:
    """Return a new player; `device`, where networks run, is called only for a player in a file.

    Raises SettingsError naming `key` for a file of another game, and CheckpointError for a damaged file.
    """
    if player.path is None:
        return make_player(game, player.name, player.kind, player.options)
    from busso.train.players.trained import load_from_file

    return load_from_file(game, player, device(), key)
