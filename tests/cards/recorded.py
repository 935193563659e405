from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game, States
from busso.cards.play import play
from busso.cards.players import RandomPlayer
from busso.cards.records import Recorder


def recorded(game: Game, seeds: NDArray[np.uint64]) -> tuple[list[dict[str, Any]], States]:
    """Return the record of each game between random players, and the final states."""
    starts, recorder = game.deal(seeds), Recorder(game, seeds.size)
    seats = np.zeros((seeds.size, game.seats), np.uint8)
    final, _ = play(game, seeds, [RandomPlayer()], seats, watch=recorder.watch)
    return [recorder.take(k, start) for k, start in enumerate(starts)], final
