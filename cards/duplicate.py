"""Duplicate deals: every deal is played with the two sides swapped, so that the luck of the cards cancels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cards.game import Game
from cards.play import Player, play

BATCH = 2048
_NORMAL_95 = 1.959963984540054


@dataclass(frozen=True)
class Estimate:
    """A mean over independent deals with the half-width of its 95% interval (normal approximation)."""

    mean: float
    half_width: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ± {self.half_width:.3f}"


def estimate(values: NDArray[np.float64]) -> Estimate:
    """Mean of one value per deal. With fewer than two deals the interval is infinite."""
    if values.size < 2:
        return Estimate(float(values.mean()), float("inf"))
    spread = float(values.std(ddof=1)) / float(np.sqrt(values.size))
    return Estimate(float(values.mean()), _NORMAL_95 * spread)


@dataclass(frozen=True)
class Duel:
    """What one player did against another: one row per deal, each the mean of the deal's plays.

    `wins` is the share of plays won (a tie counts one half), `own` and `other` the mean return of each side's seats.
    """

    wins: NDArray[np.float64]
    own: NDArray[np.float64]
    other: NDArray[np.float64]

    @property
    def win_rate(self) -> Estimate:
        """Share of games won, 0 to 1."""
        return estimate(self.wins)

    @property
    def points(self) -> Estimate:
        """Own minus the other side's return per game, in the game's unit."""
        return estimate(self.own - self.other)


def seatings(game: Game) -> NDArray[np.uint8]:
    """Who sits where in each play of a deal: `[plays, seats]` of 0 (first player) and 1 (second).

    Teams alternate between the two players, and every deal is played once as such and once swapped. In a game of one
    team, that is once by each player.
    """
    first = np.zeros(game.seats, np.uint8)
    for index, team in enumerate(game.teams):
        first[list(team)] = index % 2
    return np.stack([first, 1 - first])


def duel(game: Game, first: Player, second: Player, seeds: NDArray[np.uint64]) -> Duel:
    """Play `first` against `second` on the deals `seeds`, each deal once per seating.

    Raises ValueError when there are no deals.
    """
    if not seeds.size:
        raise ValueError("a duel needs at least one deal")
    parts = [_duel_batch(game, first, second, seeds[k : k + BATCH]) for k in range(0, seeds.size, BATCH)]
    return Duel(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


def _duel_batch(
    game: Game, first: Player, second: Player, seeds: NDArray[np.uint64]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    plays = seatings(game)
    states, _ = play(game, np.tile(seeds, len(plays)), [first, second], np.repeat(plays, seeds.size, axis=0))
    returns = game.returns(states).reshape(len(plays), seeds.size, game.seats).astype(np.float64)
    taken = game.taken(states).reshape(returns.shape)
    own = _mean_of_side(returns, (plays == 0)[:, None] & taken)
    other = _mean_of_side(returns, (plays == 1)[:, None] & taken)
    if len(game.teams) == 1:
        # Nobody sits on the other side: what the two made of the same deal is compared.
        own, other = own[:1], other[1:]
    wins = (np.sign(own - other) + 1) / 2
    return wins.mean(axis=0), own.mean(axis=0), other.mean(axis=0)


def _mean_of_side(returns: NDArray[np.float64], side: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Mean over the seats of a side, `[plays, deals, seats]` -> `[plays, deals]`; 0 where nobody sits on it."""
    mean: NDArray[np.float64] = (returns * side).sum(axis=2) / np.maximum(side.sum(axis=2), 1)
    return mean
