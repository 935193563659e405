"""Cancellation of running games."""

import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game
from busso.cards.play import Actions, Decisions, Player
from busso.cards.player_specs import PlayerSpec

Stop = Callable[[], bool]  # returns whether to cancel the games
LOOK_SECONDS = 0.05  # between two checks while a player searches; a single decision may take longer
_MOST = 64  # decisions between two checks: later ones may be far harder


class StoppedError(Exception):
    """Cancellation of the running games, which have no result."""


def never() -> bool:
    """Never stop: the `Stop` of games that are played to the end."""
    return False


def stoppable(game: Game, name: str, player: Player, stop: Stop) -> Player:
    """Wrap a player so that its games end with StoppedError once `stop()` is true; its choices stay the same."""
    if stop is never:
        return player
    return ChunkedPlayer(player, stop) if PlayerSpec.parse(name).who in game.kinds else StoppablePlayer(player, stop)


class StoppablePlayer:
    """Player that raises StoppedError if it must decide after `stop()` became true."""

    def __init__(self, player: Player, stop: Stop) -> None:
        self.begin, self._act, self._stop = player.begin, player.act, stop

    def act(self, decisions: Decisions) -> Actions:
        if self._stop():
            raise StoppedError
        return self._act(decisions)


class ChunkedPlayer:
    """Stoppable player for searches: it decides in pieces that take about `LOOK_SECONDS`.

    Its choice in one game must not depend on the other games in the call.
    """

    def __init__(self, player: Player, stop: Stop) -> None:
        self._player, self._at_a_time = StoppablePlayer(player, stop), 1

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self._player.begin(seeds)
        self._at_a_time = 1  # the first decisions of a game are the hardest

    def act(self, decisions: Decisions) -> Actions:
        actions = np.empty(decisions.games.size, np.uint8)
        first = 0
        while first < actions.size:
            rows = np.arange(first, min(first + self._at_a_time, actions.size))
            started = time.perf_counter()
            actions[rows] = self._player.act(decisions.of(rows))
            took, first = time.perf_counter() - started, first + rows.size
            if took > LOOK_SECONDS:
                self._at_a_time = max(1, self._at_a_time // 2)
            elif rows.size == self._at_a_time and took < LOOK_SECONDS / 2:
                self._at_a_time = min(_MOST, 2 * self._at_a_time)
        return actions
