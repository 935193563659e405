"""A DQN that learns against one frozen player on the reduced Spike, by the plain classes of a run."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from busso.cards.compiled.splitmix import stream
from busso.cards.game import Game
from busso.cards.play import Actions, Decisions, Player, play
from busso.train.dqn.learner.learner import Learner
from busso.train.dqn.learner.schedules import epsilon, linear
from busso.train.dqn.network.build import build_network, inference_network
from busso.train.dqn.network.q_network import NetworkPlayer
from busso.train.dqn.replay.transitions import TransitionRecorder
from busso.train.dqn.rollout.worker import build_replay
from busso.train.settings.dqn import LearnerSettings, TrainSettings
from busso.train.settings.learning import NetworkSettings, OpponentSettings, PhaseSettings, ReplaySettings

CPU = torch.device("cpu")
BATCH = 512  # games between two times of learning


def small_settings(game: Game, seed: int = 1) -> TrainSettings:
    return TrainSettings(
        game={"name": game.name},
        seed=seed,
        device="cpu",
        network=NetworkSettings(hidden=[128, 128]),
        learner=LearnerSettings(batch_size=256, n_step=2, samples_per_insert=8.0, learning_starts=2000),
        replay=ReplaySettings(capacity=100_000),
        opponents=OpponentSettings(phases=[PhaseSettings(None, {"network": 1.0})]),
    )


def trained_response(game: Game, opponent: Player, games: int = 40_000, seed: int = 1) -> NetworkPlayer:
    """The network after so many games in either seat in turn, from its own seat's decisions alone."""
    *_, trained = snapshots(game, opponent, games, seed, 1)
    return trained


def snapshots(game: Game, opponent: Player | None, games: int, seed: int, count: int) -> Iterator[NetworkPlayer]:
    """The network after each of `count` equal parts of the training, as players that do not explore.

    Without an opponent it plays itself, and learns from both seats.
    """
    settings = small_settings(game, seed)
    learner = Learner(build_network(game, settings), build_replay(game, settings, CPU), settings.learner, CPU)
    network = inference_network(game, settings, CPU)
    player = NetworkPlayer(network)
    per_update = settings.learner.batch_size / settings.learner.samples_per_insert
    batches = games // BATCH
    for batch in range(batches):
        spent = batch / batches
        player.epsilon = epsilon(spent, 1.0, 0.05, 0.3)
        _play_one_batch(game, player, opponent, batch * BATCH, settings, learner)
        if learner.replay.inserted >= settings.learner.learning_starts:
            learner.lr = linear(settings.learner.lr, settings.learner.lr_end, spent)
            for _ in range(int(learner.replay.inserted / per_update) - learner.updates):
                learner.update()
            network.load_state_dict(learner.inference_weights())
        if (batch + 1) * count // batches > batch * count // batches:
            yield NetworkPlayer(copy.deepcopy(network))


def _play_one_batch(
    game: Game, player: Player, opponent: Player | None, first: int, settings: TrainSettings, learner: Learner
) -> None:
    """Play a batch of games into the replay buffer."""
    seeds = stream(settings.seed, "episodes", first, BATCH)
    seating = np.zeros((BATCH, 2), np.uint8)
    if opponent is not None:
        seating[np.arange(BATCH), np.arange(BATCH) % 2] = 1
    players = [player] if opponent is None else [player, opponent]
    recorder = TransitionRecorder(game)

    def watch(decisions: Decisions, actions: Actions, earned: NDArray[np.float32]) -> None:
        own = seating[decisions.games, decisions.seats] == 0
        recorder.watch(decisions.of(own), actions[own], earned)

    reward = game.rewards[settings.reward_name(game)]
    _, totals = play(game, seeds, players, seating, reward, watch, observed=True)
    learner.replay.add(recorder.transitions(totals, settings.learner.gamma, settings.learner.n_step))
