"""A table as a player, for tournaments and simulations."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from cards.game import Games, States
from cards.play import Actions


class TablePlayer:
    """Plays `policy[index(state)]`, with the compiled function that numbers the states of a game."""

    def __init__(self, index: Callable[..., int], policy: NDArray[np.int64]) -> None:
        self._loop = _loop(index)
        self._policy = policy

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """See `cards.play.Player`; nothing is random here."""

    def act(self, states: States, games: Games) -> Actions:
        """See `cards.play.Player`."""
        actions = np.empty(games.size, np.uint8)
        self._loop(states, games, self._policy, actions)
        return actions


@cache
def _loop(index: Callable[..., int]) -> Callable[..., None]:
    @njit
    def act(states: Any, games: Any, policy: Any, out: Any) -> None:
        for k in range(games.size):
            out[k] = policy[index(states[games[k]])]

    return act
