"""Several networks as one player; one of them is drawn for each game."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import derive
from busso.cards.play import Actions, Decisions
from busso.train.dqn.network.q_network import NetworkPlayer

_DRAW = 0x30F  # salt of the generators that draw


class MixturePlayer:
    """Draws one of the networks for each game, each as likely, by the game's generator; that one plays all of it.

    Against opponents that cannot tell which, that is the average of the policies, as in fictitious play (Brown, 1951).
    """

    def __init__(self, members: Sequence[NetworkPlayer]) -> None:
        self.members = list(members)
        self.drawn = np.zeros(0, np.int64)  # by game of the batch

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        self.drawn = draws(seeds, len(self.members))
        for member in self.members:
            member.begin(seeds)

    def act(self, decisions: Decisions) -> Actions:
        """See `busso.cards.play.Player`; one forward pass of each network that has games here."""
        drawn = self.drawn[decisions.games]
        actions = np.empty(drawn.size, np.uint8)
        for index in np.unique(drawn):
            rows = np.flatnonzero(drawn == index)
            actions[rows] = self.members[index].act(decisions.of(rows))
        return actions

    def values(self, words: NDArray[np.uint64]) -> NDArray[np.float32]:
        """The mean of all networks' values, `[rows, actions]`, for who asks about positions and not about a game."""
        values = np.stack([member.values(words) for member in self.members])
        mean: NDArray[np.float32] = values.mean(axis=0, dtype=np.float32)
        return mean


def draws(seeds: NDArray[np.uint64], count: int) -> NDArray[np.int64]:
    """Draw which of `count` networks plays the games with these generators."""
    upper = derive(seeds, _DRAW) >> np.uint64(32)  # as `busso.cards.compiled.splitmix.below`, for all at once
    return ((upper * np.uint64(count)) >> np.uint64(32)).astype(np.int64)
