"""Rollout worker, which seats the players and plays batches of games, and the evaluator of the learning network.

`train/rollout/ray/` wraps both as actors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import derive, stream
from busso.cards.duplicate import ALTERNATE, ONE_AGAINST_MANY, Duel, duel
from busso.cards.game import Game
from busso.cards.play import Actions, Decisions, Player, Stop, StoppablePlayer, never, play, stoppable
from busso.train.network.build import inference_network
from busso.train.network.q_network import NetworkPlayer
from busso.train.players.load import player_from_text
from busso.train.rollout.request import EpisodeReturn, Rollout, RolloutRequest, Weights
from busso.train.rollout.transitions import TransitionRecorder
from busso.train.settings.dqn import NETWORK, SEAT, SIDE, LambdaReturns, PhaseSettings, TrainSettings

_SEATING, _SIDE = 0x5EA7, 0x51DE
_ROUNDING = 1e-4  # rounding error of sums of float32 rewards, relative to their size


class RolloutWorker:
    """Worker that plays requests with the newest loaded weights; networks run on `device`."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._settings = settings
        self._game = settings.load_game()
        self._reward = self._game.rewards[settings.reward_name(self._game)]
        self.network = inference_network(self._game, settings, device)
        self._names = player_names(phases_of(settings))
        self._player = NetworkPlayer(self.network, keeps_values=isinstance(settings.target, LambdaReturns))
        key = "opponents.phases.mix" if settings.opponents.only is None else "opponents.only"
        others = [player_from_text(self._game, name, device, key) for name in self._names[1:]]
        self._players: list[Player] = [self._player, *others]
        self.version = -1  # version of the weights
        self.rounds = 0  # rounds of moves in all batches so far, by which a stalled worker is detected

    def load(self, version: int, weights: Weights) -> None:
        """Use these weights from now on; loading the same version again is free."""
        if version != self.version:
            self.network.load_state_dict(weights)
            self.version = version

    def play(self, request: RolloutRequest) -> Rollout:
        """Play a request. The same request with the same weights gives the same rollout."""
        settings, targets = self._settings, self._settings.target
        values = isinstance(targets, LambdaReturns)
        name = f"episodes, attempt {request.attempt}" if request.attempt else "episodes"
        seeds = stream(settings.seed, name, request.first, request.count)
        seats = seating(phases_of(settings), self._names, request.first, seeds, self._game)
        self._player.epsilon = request.epsilon
        own, learned = seats == 0, learned_seats(settings, seats, request.first)
        if values and len(self._names) > 1:
            learned = own  # the network computes no values at others' decisions
        recorder, decided = TransitionRecorder(self._game), 0

        def watch(decisions: Decisions, actions: Actions, earned: NDArray[np.float32]) -> None:
            nonlocal decided
            self.rounds += 1
            if learned is not None:
                rows = np.flatnonzero(learned[decisions.games, decisions.seats])
                if rows.size < actions.size:
                    decisions, actions = decisions.of(rows), actions[rows]
            games, player = decisions.games, self._player
            if games.size:
                lambda_inputs = (player.greedy[games], player.value[games]) if values else ()
                recorder.watch(decisions, actions, earned, *lambda_inputs)
                decided += games.size

        states, totals = play(self._game, seeds, self._players, seats, self._reward, watch, observed=True)
        transitions = recorder.transitions(totals, settings.learner.discounts, targets)
        occupied = self._game.occupied(states)
        return Rollout(request, transitions, decided, self.version, episode_return(totals, own, occupied))


class Evaluator:
    """Evaluation of the network on duplicate deals against players that do not learn."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._settings = settings
        self._game = settings.load_game()
        self._network = inference_network(self._game, settings, device)
        key, opponents = "evaluation.opponents", settings.evaluation.opponents
        self._opponents = {name: player_from_text(self._game, name, device, key) for name in opponents}

    def duels(
        self,
        weights: Weights,
        stream_name: str,
        deals: int,
        stop: Stop = never,
        done: Callable[[int], object] = lambda deals: None,
        only: str | None = None,
    ) -> dict[str, Duel]:
        """Play each opponent, or `only` one, on deals of the seed stream `stream_name`.

        `done` gets the deals of each batch. Raises StoppedError soon after `stop()`.
        """
        self._network.load_state_dict(weights)
        player = StoppablePlayer(NetworkPlayer(self._network), stop)
        seeds = stream(self._settings.seed, stream_name, 0, deals)
        seating = evaluation_seating(self._settings)
        chosen = self._opponents if only is None else {only: self._opponents[only]}
        others = {name: stoppable(self._game, name, other, stop) for name, other in chosen.items()}
        return {name: duel(self._game, player, other, seeds, seating, done) for name, other in others.items()}


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
    return list(dict.fromkeys([NETWORK, *(name for phase in phases for name in phase.mix)]))


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


def episode_return(totals: NDArray[np.float32], own: NDArray[np.bool_], occupied: NDArray[np.bool_]) -> EpisodeReturn:
    """Return the episode return, given the rewards, the network's `own` and all `occupied` seats, `[games, seats]`."""
    seats = own & occupied
    if not seats.any():
        seats = occupied
    earned = totals[seats].astype(np.float64)
    absolute = float(np.abs(earned).mean())
    all_seats = totals.shape[1] > 1 and np.array_equal(seats, occupied)
    sums = np.where(occupied, totals, 0).sum(axis=1, dtype=np.float64)
    zero = all_seats and bool((np.abs(sums) <= _ROUNDING * absolute).all())
    return EpisodeReturn(math.nan if zero else float(earned.mean()), absolute)


def evaluation_seating(settings: TrainSettings) -> str:
    """Return the seating of the network and an opponent in evaluations; see `busso.cards.duplicate.seatings`.

    As in training, a network that learns against one player sits alone, with that player in all other seats.
    """
    one = settings.opponents.only is not None and len(settings.load_game().teams) > 2
    return ONE_AGAINST_MANY if one else ALTERNATE
