"""Who sits at the table: people, and players by what a person calls them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cards.game import Game
from train.dqn.players.resolve import resolve

if TYPE_CHECKING:
    import torch

    from cards.play import Player

HUMAN = "human"


def seated_player(game: Game, text: str) -> Player:
    """The player that is meant, as in tournaments. Raises SettingsError or CheckpointError, one line."""
    from evaluate.players import load_resolved  # with Numba, for which no settings wait

    found = resolve(game, text, others=(HUMAN,))
    player = load_resolved(game, found, _cpu)
    if found.path is not None:
        _ask_once(game, player)
    return player


def _cpu() -> torch.device:
    import torch

    torch.set_num_threads(1)  # one row at a time: threads would only wait for one another
    return torch.device("cpu")


def _ask_once(game: Game, player: Player) -> None:
    """What a player needs compiled takes seconds: that is waited for when it sits down, not at its first move."""
    from cards.play import Decisions

    seeds = np.zeros(1, np.uint64)
    states = game.deal(seeds)
    if not game.over(states)[0]:
        player.begin(seeds)
        player.act(Decisions(game, states, np.zeros(1, np.int64)))


def default_opponent(game: Game) -> str:
    """The rule player that a game is first played against: the last-named of the sound ones, else `random`."""
    for name in ("greedy", "cautious"):
        if name in game.policies:
            return name
    return next(iter(game.policies), "random")
