"""Who sits in the seats while a network learns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from cards.game import Game
from cards.splitmix import derive
from train.settings.dqn import NETWORK, TrainSettings
from train.settings.learning import PhaseSettings

_SEATING, _SIDE = 0x5EA7, 0x51DE


def seated_players(settings: TrainSettings) -> list[str]:
    """Everybody who plays in the games that are learned from; the network comes first."""
    return player_names(settings.behaviour) if settings.opponent is None else [NETWORK, settings.opponent]


def seats_of(
    settings: TrainSettings, game: Game, names: Sequence[str], first_episode: int, seeds: NDArray[np.uint64]
) -> NDArray[np.uint8]:
    """Who sits where in each episode, `[episodes, seats]` of indices into `names`, which are `seated_players`."""
    if settings.opponent is not None:
        return one_side(game, seeds)
    return seating(settings.behaviour, names, first_episode, seeds, game.seats)


def one_side(game: Game, seeds: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """0 in the seats of one team of each game, and 1 in all others: `[games, seats]`.

    Which team is drawn by the game's seed, each as likely, among those that have a seat which is taken.
    """
    first = [min(team) for team in game.teams]
    there = game.taken(game.deal(seeds))[:, first].sum(axis=1).astype(np.uint64)
    drawn = ((derive(seeds, _SIDE) >> np.uint64(32)) * there) >> np.uint64(32)  # as `cards.splitmix.below`
    team_of = np.empty(game.seats, np.uint64)
    for index, team in enumerate(game.teams):
        team_of[list(team)] = index
    return (team_of != drawn[:, None]).astype(np.uint8)


def player_names(phases: Sequence[PhaseSettings]) -> list[str]:
    """Everybody who plays in some phase; the network comes first."""
    names = [NETWORK]
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
