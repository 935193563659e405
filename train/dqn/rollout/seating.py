"""Seating of the players in training games."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import derive
from busso.cards.game import Game
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.learning import NETWORK, SEAT, SIDE, PhaseSettings

_SEATING, _SIDE = 0x5EA7, 0x51DE


def seated_players(settings: TrainSettings) -> list[str]:
    """Return the players of the training games, the network first."""
    return player_names(phases_of(settings))


def phases_of(settings: TrainSettings) -> list[PhaseSettings]:
    """Return the phases of a run; one phase against a single opponent."""
    if settings.opponents.only is None:
        return settings.opponents.phases
    return [PhaseSettings(None, {settings.opponents.only: 1.0}, SIDE)]


def seating(
    phases: Sequence[PhaseSettings], names: Sequence[str], first_episode: int, seeds: NDArray[np.uint64], game: Game
) -> NDArray[np.uint8]:
    """Return each seat's player, `[episodes, seats]` of indices into `names`, drawn by the game's seed."""
    out = np.zeros((seeds.size, game.seats), np.uint8)
    for rows, phase in _rows_of_phases(phases, first_episode, seeds.size):
        if phase.each == SEAT:
            out[rows] = np.stack([_draw(phase, names, seeds[rows], seat) for seat in range(game.seats)], axis=1)
        else:
            out[rows] = one_side(game, seeds[rows]) * _draw(phase, names, seeds[rows], game.seats)[:, None]
    return out


def learned_seats(settings: TrainSettings, sitting: NDArray[np.uint8], first_episode: int) -> NDArray[np.bool_] | None:
    """Return the seats whose decisions are learned from, `[episodes, seats]`, given the seating; None for all.

    Where each seat is drawn separately, all players meet the same mixture. Where players have sides, the others are
    part of the network's environment. Their own transitions come from a different environment, whose other seats learn:
    no step of theirs, however short, belongs to a best response to them, so they are not used.
    """
    phases = _rows_of_phases(phases_of(settings), first_episode, len(sitting))
    if all(phase.each == SEAT for _, phase in phases):
        return None
    learned = np.ones(sitting.shape, np.bool_)
    for rows, phase in phases:
        if phase.each == SIDE:
            learned[rows] = sitting[rows] == 0
    return learned


def one_side(game: Game, seeds: NDArray[np.uint64]) -> NDArray[np.uint8]:
    """Return 0 for the seats of one team present, drawn by the game's seed, and 1 for others: `[games, seats]`."""
    first = [min(team) for team in game.teams]
    there = game.occupied(game.deal(seeds))[:, first].sum(axis=1).astype(np.uint64)
    # As `busso.cards.compiled.splitmix.below`.
    drawn = ((derive(seeds, _SIDE) >> np.uint64(32)) * there) >> np.uint64(32)
    team_of = np.empty(game.seats, np.uint64)
    for index, team in enumerate(game.teams):
        team_of[list(team)] = index
    return (team_of != drawn[:, None]).astype(np.uint8)


def player_names(phases: Sequence[PhaseSettings]) -> list[str]:
    """Return the players of all phases, the network first."""
    names = [NETWORK]
    for phase in phases:
        names += [name for name in phase.mix if name not in names]
    return names


def _rows_of_phases(
    phases: Sequence[PhaseSettings], first_episode: int, count: int
) -> list[tuple[slice, PhaseSettings]]:
    """Return the phases of these episodes, each with its slice of them."""
    out, start = [], 0
    for phase in phases:
        end = count if phase.until is None else min(max(phase.until - first_episode, 0), count)
        if end > start:
            out.append((slice(start, end), phase))
            start = end
    return out


def _draw(phase: PhaseSettings, names: Sequence[str], seeds: NDArray[np.uint64], seat: int) -> NDArray[np.uint8]:
    """Draw one player of the mixture per game, as an index into `names`; draws for different seats are independent."""
    players = np.array([names.index(name) for name in phase.mix], np.uint8)
    bounds = np.cumsum(list(phase.mix.values()))
    draws = derive(seeds, _SEATING + seat) / 2.0**64
    # The last bound may round to less than 1.
    return players[np.minimum(np.searchsorted(bounds, draws, side="right"), players.size - 1)]
