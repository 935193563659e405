"""Several networks as one player; one is drawn for each game."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import derive
from busso.cards.play import Actions, Decisions
from busso.train.dqn.network.q_network import NetworkPlayer

_DRAW = 0x30F  # salt of the generators for draws


class MixturePlayer:
    """Player that draws one of its networks for each game, uniformly and by the game's generator.

    Against opponents that cannot tell which one plays, it is the average policy of fictitious play (Brown, 1951).
    """

    def __init__(self, members: Sequence[NetworkPlayer]) -> None:
        self.members = list(members)
        self.drawn = np.zeros(0, np.int64)  # index of the network, by game of the batch

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self.drawn = draws(seeds, len(self.members))
        for member in self.members:
            member.begin(seeds)

    def act(self, decisions: Decisions) -> Actions:
        """Return one action per game; each network that has games here makes one forward pass."""
        drawn = self.drawn[decisions.games]
        actions = np.empty(drawn.size, np.uint8)
        for index in np.unique(drawn):
            rows = np.flatnonzero(drawn == index)
            actions[rows] = self.members[index].act(decisions.of(rows))
        return actions

    def values(self, words: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return the mean of all networks' values, `[rows, actions]`, for queries about single positions."""
        values = np.stack([member.values(words) for member in self.members])
        mean: NDArray[np.float32] = values.mean(axis=0, dtype=np.float32)
        return mean


def draws(seeds: NDArray[np.uint64], count: int) -> NDArray[np.int64]:
    """Return the index of the network, of `count`, that plays each game."""
    upper = derive(seeds, _DRAW) >> np.uint64(32)  # a vectorized `busso.cards.compiled.splitmix.below`
    return ((upper * np.uint64(count)) >> np.uint64(32)).astype(np.int64)
