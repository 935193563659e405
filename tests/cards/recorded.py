"""Random games as records."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cards.game import Game, States
from cards.play import Actions, Decisions, play
from cards.players import RandomPlayer


def recorded(game: Game, seeds: NDArray[np.uint64]) -> tuple[list[dict[str, Any]], States]:
    """The record of each game between random players, and how they ended."""
    starts = game.deal(seeds)
    played: list[list[int]] = [[] for _ in seeds]

    def watch(decisions: Decisions, actions: Actions, totals: NDArray[np.float32]) -> None:
        for k, action in zip(decisions.games.tolist(), actions.tolist(), strict=True):
            played[k].append(action)

    final, _ = play(game, seeds, [RandomPlayer()], np.zeros((seeds.size, game.seats), np.uint8), watch=watch)
    return [game.record(start, actions) for start, actions in zip(starts, played, strict=True)], final
