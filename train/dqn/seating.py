"""Who sits in the seats while a network learns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cards.splitmix import derive
from train.settings.dqn import PhaseSettings

_SEATING = 0x5EA7


def player_names(phases: Sequence[PhaseSettings]) -> list[str]:
    """Everybody who plays in some phase; the network comes first."""
    names = ["network"]
    for phase in phases:
        names += [name for name in phase.mix if name not in names]
    return names


def seating(
    phases: Sequence[PhaseSettings], names: Sequence[str], first_episode: int, seeds: NDArray[np.uint64], seats: int
) -> NDArray[np.uint8]:
    """Who sits where in each episode, `[episodes, seats]` of indices into `names`.

    Every seat is drawn by itself from the mixture of its episode's phase; the draw follows from the game's seed.
    """
    out = np.zeros((seeds.size, seats), np.uint8)
    start = 0
    for phase in phases:
        end = seeds.size if phase.until is None else min(max(phase.until - first_episode, 0), seeds.size)
        if end > start:
            out[start:end] = _draw(phase, names, seeds[start:end], seats)
            start = end
    return out


def _draw(phase: PhaseSettings, names: Sequence[str], seeds: NDArray[np.uint64], seats: int) -> NDArray[np.uint8]:
    players = np.array([names.index(name) for name in phase.mix], np.uint8)
    bounds = np.cumsum(list(phase.mix.values()))
    draws = np.stack([derive(seeds, _SEATING + seat) for seat in range(seats)], axis=1) / 2.0**64
    # The last bound may round to less than 1.
    return players[np.minimum(np.searchsorted(bounds, draws, side="right"), players.size - 1)]
