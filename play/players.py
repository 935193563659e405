"""Players at the table: people, and players by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from busso.cards.game import Game, States
from busso.train.dqn.players.resolve import resolve

if TYPE_CHECKING:
    import torch

    from busso.cards.play import Player

HUMAN = "human"
FIRST = np.zeros(1, np.uint64)  # the seed of the game in which a player is asked once
_LATER = 8  # actions after which a search is asked once: two tricks of Tressette, in which it plays as its network


def seated_player(game: Game, text: str) -> Player:
    """The player that `opponents` names, as in tournaments. Raises SettingsError or CheckpointError, one line."""
    from busso.evaluate.players import load_resolved  # with Numba, for which no settings wait

    found = resolve(game, text, "opponents", others=(HUMAN,))
    player = load_resolved(game, found, table_device, "opponents")
    if found.path is not None:
        _ask_once(game, player)
    return player


def table_device() -> torch.device:
    """The device of networks at the table, which are asked one row at a time."""
    import torch

    torch.set_num_threads(1)  # threads would only wait for one another
    return torch.device("cpu")


def _ask_once(game: Game, player: Player) -> None:
    """Compiling takes seconds: that is waited for when a player sits down, not at its first move."""
    from busso.cards.play import Decisions

    states, the_one = game.deal(FIRST), np.zeros(1, np.int64)
    if not game.over(states)[0]:
        player.begin(FIRST)
        player.act(Decisions(game, states, the_one))
        if hasattr(player, "action_values"):
            player.action_values(Decisions(game, later(game), the_one))


def later(game: Game) -> States:
    """A game after `_LATER` actions, always the lowest legal one; after fewer where it would then be over.

    Over it is only where it was dealt so.
    """
    states = game.deal(FIRST)
    for _ in range(0 if game.over(states)[0] else _LATER):
        mask, after = int(game.legal(states)[0]), states.copy()
        game.apply(after, np.array([(mask & -mask).bit_length() - 1], np.uint8))
        if game.over(after)[0]:
            break
        states = after
    return states


def default_opponent(game: Game) -> str:
    """The rule player that a game is first played against: the last-named of the sound ones, else `random`."""
    for name in ("greedy", "cautious"):
        if name in game.policies:
            return name
    return next(iter(game.policies), "random")
