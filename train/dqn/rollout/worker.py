"""Rollout worker, which plays batches of games. No Ray here: `train/dqn/rollout/ray/` wraps it as an actor."""

import math
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game
from busso.cards.play import Actions, Decisions, Player, play
from busso.train.dqn.network.build import inference_network
from busso.train.dqn.network.q_network import NetworkPlayer
from busso.train.dqn.players.load import player_of
from busso.train.dqn.replay.buffer import ReplayBuffer
from busso.train.dqn.replay.transitions import TransitionRecorder, transitions_for
from busso.train.dqn.rollout.request import EpisodeReturn, Rollout, RolloutRequest, Weights
from busso.train.dqn.rollout.seating import learned_seats, phases_of, seated_players, seating
from busso.train.settings.dqn import TrainSettings
from busso.train.settings.targets import LambdaReturns

_ROUNDING = 1e-4  # rounding error of sums of float32 rewards, relative to their size


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


def seeds_and_seats(
    settings: TrainSettings, game: Game, names: Sequence[str], request: RolloutRequest
) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return the seed of each game of a request, and its seating as indices into `names`; the same for every worker."""
    name = f"episodes, attempt {request.attempt}" if request.attempt else "episodes"
    seeds = stream(settings.seed, name, request.first, request.count)
    return seeds, seating(phases_of(settings), names, request.first, seeds, game)


def build_replay(game: Game, settings: TrainSettings, device: torch.device) -> ReplayBuffer:
    """Return the run's empty replay buffer. Raises MemoryError if the device has too little memory."""
    kind = transitions_for(settings.target)
    return ReplayBuffer(kind, settings.replay.capacity, game.words, device, settings.seed)


class RolloutWorker:
    """Worker that plays requests with the newest loaded weights; networks run on `device`."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._settings = settings
        self._device = device
        self._game = settings.load_game()
        self._reward = self._game.rewards[settings.reward_name(self._game)]
        self.network = inference_network(self._game, settings, device)
        self._names = seated_players(settings)
        self._player = NetworkPlayer(self.network, keeps_values=isinstance(settings.target, LambdaReturns))
        self._players: list[Player] = [self._player, *map(self._other, self._names[1:])]
        self.version = -1  # version of the weights
        self.rounds = 0  # rounds of moves in all batches so far, by which a stalled worker is detected

    def load(self, version: int, weights: Weights) -> None:
        """Use these weights from now on; loading the same version again is free."""
        if version != self.version:
            self.network.load_state_dict(weights)
            self.version = version

    def _other(self, name: str) -> Player:
        key = "opponents.phases.mix" if self._settings.opponents.only is None else "opponents.only"
        return player_of(self._game, name, self._device, key)

    def play(self, request: RolloutRequest) -> Rollout:
        """Play a request. The same request with the same weights gives the same rollout."""
        settings, targets = self._settings, self._settings.target
        values = isinstance(targets, LambdaReturns)
        seeds, seats = seeds_and_seats(settings, self._game, self._names, request)
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
