"""The results of games that a program has lost by a fault."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from busso.cards.game import Game
from busso.cards.matches.duplicate import Outcome


def with_lost(
    game: Game, outcome: Outcome, sides: NDArray[np.uint8], lost: NDArray[np.bool_], target: int | None = None
) -> Outcome:
    """The outcome with the worst results where a side has `lost` a game by a fault, `[2, games]`.

    Each of its seats gets `game.worst`, and the others share the rest of `game.total`, or get `-game.worst` where that
    is None. In a match to `target` they get 0 and the target. Where both sides have lost, both get the worst.
    """
    if not lost.any():
        return outcome
    results, occupied = outcome
    worst = 0.0 if target is not None else game.worst
    assert worst is not None  # else no fault is forgiven
    own, others = (
        [occupied & (sides == seated) & lost[side][:, None] for side, seated in enumerate(order)]
        for order in ((0, 1), (1, 0))
    )
    for losing, winning in zip(own, others, strict=True):
        best = np.full(len(results), -worst if target is None else target)
        if target is None and game.total is not None:
            best = (game.total - worst * losing.sum(axis=1)) / np.maximum(winning.sum(axis=1), 1)
        results = np.where(winning, best[:, None], results)
    return np.where(own[0] | own[1], worst, results).astype(np.float32), occupied
