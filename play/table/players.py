"""Who sits at the table: people, and players by what a person calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cards.champions import CHAMPION
from cards.game import Game
from cards.player_specs import parse_spec, player_names
from command.settings.checks import SettingsError

if TYPE_CHECKING:
    from cards.play import Player

HUMAN = "human"


def seated_player(game: Game, spec: str) -> Player:
    """The player that `spec` means, as in tournaments. Raises SettingsError or CheckpointError, one line.

    PyTorch is imported for those made of a file alone: nobody else should wait for it.
    """
    try:
        named = parse_spec(spec)
        if named is not None and named.name in player_names(game):
            from cards.play import named_player

            return named_player(game, spec)
    except ValueError as error:
        raise SettingsError("players", error) from None
    if named is not None and named.argument is None and "/" not in spec and spec != CHAMPION and not _is_there(spec):
        known = ", ".join([*player_names(game), CHAMPION, "search(RUN)", HUMAN])
        raise SettingsError(
            "players", f"{spec}: {game.name} has no such player", f"it has {known}, or give a run folder"
        )
    import torch

    from evaluate.players.load import load_player

    torch.set_num_threads(1)  # one row at a time: threads would only wait for one another
    player = load_player(game, spec, torch.device("cpu"))
    _ask_once(game, player)
    return player


def _ask_once(game: Game, player: Player) -> None:
    """What a player needs compiled takes seconds: that is waited for when it sits down, not at its first move."""
    from cards.play import Decisions

    seeds = np.zeros(1, np.uint64)
    states = game.deal(seeds)
    if not game.over(states)[0]:
        player.begin(seeds)
        player.act(Decisions(game, states, np.zeros(1, np.int64)))


def _is_there(spec: str) -> bool:
    from pathlib import Path

    return Path(spec).exists()


def default_opponent(game: Game) -> str:
    """The rule player that a game is first played against: the last-named of the sound ones, else `random`."""
    for name in ("greedy", "cautious"):
        if name in game.policies:
            return name
    return next(iter(game.policies), "random")
