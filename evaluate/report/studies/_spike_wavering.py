"""A player that now and then plays at random, or sits at a table with fewer raises than it learned with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cards.compiled.bits import has
from cards.compiled.jit import njit
from cards.compiled.splitmix import GAMMA, mix, uniform
from cards.game import Games
from cards.play import Actions, Decisions, Player
from cards.players import random_legal


class Wavering:
    """Plays as another, but with probability `epsilon` any legal action, and `instead` of one that is not legal."""

    def __init__(self, player: Player, epsilon: float, instead: int) -> None:
        self._player = player
        self._epsilon, self._instead = epsilon, instead
        self._generators = np.zeros(0, np.uint64)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """See `Player`."""
        self._generators = seeds.copy()
        self._player.begin(seeds)

    def act(self, decisions: Decisions) -> Actions:
        """See `Player`."""
        actions = self._player.act(decisions)
        _waver(decisions.legal, decisions.games, self._generators, self._epsilon, self._instead, actions)
        return actions


@njit
def _waver(
    masks: NDArray[np.uint64],
    games: Games,
    generators: NDArray[np.uint64],
    epsilon: float,
    instead: int,
    actions: Actions,
) -> None:
    for k in range(games.size):
        generators[games[k]] += GAMMA
        bits = mix(generators[games[k]])
        if uniform(bits) < epsilon:
            actions[k] = random_legal(masks[k], mix(bits))
        elif not has(masks[k], actions[k]):
            actions[k] = instead
