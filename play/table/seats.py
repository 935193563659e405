"""Players at the table: people, and players by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from busso.cards.game import Game, States
from busso.train.players.resolve import resolve

if TYPE_CHECKING:
    import torch

    from busso.cards.play import Player

HUMAN = "human"
FIRST = np.zeros(1, np.uint64)  # the seed of a player's warm-up game
_LATER = 8  # actions before a search is warmed up: in Tressette's first two tricks it plays as its network


def seated_player(game: Game, text: str) -> Player:
    """Load the player that `opponents` names, as in tournaments. Raises SettingsError or CheckpointError, one line."""
    from busso.train.players.load import load_resolved  # imports Numba, for which no settings wait

    found = resolve(game, text, "opponents", others=(HUMAN,))
    player = load_resolved(game, found, table_device, "opponents")
    if found.path is not None:
        _ask_once(game, player)
    return player


def table_device() -> torch.device:
    """Return the device of networks at the table, which evaluate one row at a time."""
    import torch

    torch.set_num_threads(1)  # more threads would only wait for one another
    return torch.device("cpu")


def _ask_once(game: Game, player: Player) -> None:
    """Make a player decide once, so that it compiles when it sits down and not at its first move."""
    from busso.cards.play import Decisions

    states, the_one = game.deal(FIRST), np.zeros(1, np.int64)
    if not game.over(states)[0]:
        player.begin(FIRST)
        player.act(Decisions(game, states, the_one))
        if hasattr(player, "action_values"):
            player.action_values(Decisions(game, later(game), the_one))


def later(game: Game) -> States:
    """Return a game after `_LATER` lowest legal actions; after fewer if it would be over, unless it was dealt so."""
    states = game.deal(FIRST)
    for _ in range(0 if game.over(states)[0] else _LATER):
        mask, after = int(game.legal(states)[0]), states.copy()
        game.apply(after, np.array([(mask & -mask).bit_length() - 1], np.uint8))
        if game.over(after)[0]:
            break
        states = after
    return states


def default_opponent(game: Game) -> str:
    """Return a game's default opponent: the last-named of its sound rule players, else `random`."""
    return next((name for name in ("greedy", "cautious", *game.policies) if name in game.policies), "random")
