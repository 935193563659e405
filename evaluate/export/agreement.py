"""Agreement of an exported file with its network: the same values, and the same action."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from busso.cards.compiled.bits import WORD
from busso.cards.game import Game
from busso.command.errors import UserError
from busso.train.dqn.network.q_network import QNetwork

ROWS = 10_000
TOLERANCE = 1e-5  # of a value; relative, where it is greater than 1

Words = NDArray[np.uint64]
Values = Callable[[Words], NDArray[np.float32]]  # of packed observations


class ExportError(UserError):
    """The exported file and the network differ."""

    exit_code = 1


@dataclass(frozen=True)
class Agreement:
    """The number of observations, the greatest distance of values, and in how many the actions are the same.

    In the others the two actions are worth the same, to within the tolerance.
    """

    rows: int
    apart: float
    same: int

    def __str__(self) -> str:
        every = "every one" if self.same == self.rows else f"{self.same:,} (in the others two are worth the same)"
        return f"{self.rows:,} observations, values at most {self.apart:.1e} apart, the same action in {every}"


def agreement(network: QNetwork, exported: Values, words: Words, legal: NDArray[np.bool_]) -> Agreement:
    """Compare on observations `[rows, words]` with legal actions `[rows, actions]`.

    Raises ExportError where values or actions are not the same.
    """
    with torch.inference_mode():
        wanted = network(torch.from_numpy(words.view(np.int64))).numpy()
    found = exported(words)
    error = np.abs(found - wanted)
    if not (error <= TOLERANCE * np.maximum(1, np.abs(wanted))).all():  # also where one is no number
        raise ExportError("export", f"the exported values are up to {error.max():.1e} from those of the network")
    mine, other = _choices(wanted, legal), _choices(found, legal)
    differ = np.flatnonzero(mine != other)
    gap = wanted[differ, mine[differ]] - wanted[differ, other[differ]]
    if (gap > 2 * TOLERANCE * np.maximum(1, np.abs(wanted[differ]).max(1, initial=0))).any():
        raise ExportError("export", f"the exported network acts differently in {differ.size} of {len(words)} decisions")
    return Agreement(len(words), float(error.max()), len(words) - differ.size)


def _choices(values: NDArray[np.float32], legal: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The legal action of the greatest value, of equal ones the lowest."""
    chosen: NDArray[np.int64] = np.where(legal, values, -np.inf).argmax(1)
    return chosen


def observations(game: Game, rows: int = ROWS) -> tuple[Words, NDArray[np.bool_]]:
    """`rows` packed observations `[rows, words]`, and legal actions `[rows, actions]`, always the same.

    Each bit is set once in sixteen, as often as in Tressette, and each action legal half the time: nothing is compiled
    for it.
    """
    generator = np.random.default_rng(7)
    draws = generator.integers(0, 2**64, (4, rows, game.words), np.uint64)
    words: Words = np.bitwise_and.reduce(draws)
    words[:, -1] &= np.uint64(2 ** (game.bits - WORD * (game.words - 1)) - 1)
    legal = generator.random((rows, game.actions)) < 0.5
    legal[~legal.any(1)] = True
    return words, legal
