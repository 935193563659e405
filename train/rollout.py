"""Playing batches of games for the learner. No Ray here: `train.cluster` wraps these classes as actors."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cards.duplicate import Duel, duel
from cards.game import Game, Games, States
from cards.play import Actions, Player, named_player, play
from cards.splitmix import stream
from train.checks import SettingsError
from train.config import TrainSettings
from train.learner import choose_precision
from train.network import NetworkPlayer, QNetwork
from train.schedule import player_names, seating
from train.signals import EXIT_REQUEUE
from train.transitions import Recorder, Transitions

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Ticket:
    """One unit of work: play the episodes `first .. first + count - 1` of the run with this exploration.

    Each `attempt` at them deals other games: what ended one worker shall not end the next.
    """

    first: int
    count: int
    epsilon: float
    attempt: int = 0


@dataclass(frozen=True)
class Rollout:
    """What came of a ticket. `episode_return` is the mean reward sum of the network's seats (of all if none)."""

    ticket: Ticket
    transitions: Transitions
    weights_version: int
    episode_return: float
    seconds: float


def build_network(game: Game, settings: TrainSettings) -> QNetwork:
    """A Q-network for the game with the run's shape; its initial weights follow from the run's seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(settings.seed)
        return QNetwork(game.bits, game.actions, settings.network.hidden, settings.network.dueling)


def acting_network(game: Game, settings: TrainSettings, device: torch.device) -> QNetwork:
    """A network to play with, in the number format that `learner.precision` means on this device."""
    dtype = choose_precision(settings.learner.precision, device).dtype
    return build_network(game, settings).to(device).in_format(dtype).eval().requires_grad_(False)


class RolloutWorker:
    """Plays tickets with the newest weights it was given."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._settings = settings
        self._game = settings.load_game()
        self._reward = self._game.rewards[settings.reward_name(self._game)]
        self.network = acting_network(self._game, settings, device)
        self._names = player_names(settings.behaviour)
        self._player = NetworkPlayer(self._game, self.network)
        others = [named_player(self._game, name) for name in self._names[1:]]
        self._players: list[Player] = [self._player, *others]
        self._version = -1
        self.rounds = 0  # of moves, in all batches so far: whether a worker gets on

    def load(self, version: int, weights: Weights) -> None:
        """Play with these weights from now on; the same version again costs nothing."""
        if version != self._version:
            self.network.load_state_dict(weights)
            self._version = version

    def play(self, ticket: Ticket) -> Rollout:
        """Play a ticket to the end. The same ticket with the same weights gives the same rollout."""
        started = time.perf_counter()
        settings, learner = self._settings, self._settings.learner
        name = f"episodes, attempt {ticket.attempt}" if ticket.attempt else "episodes"
        seeds = stream(settings.seed, name, ticket.first, ticket.count)
        seats = seating(settings.behaviour, self._names, ticket.first, seeds, self._game.seats)
        self._player.epsilon = ticket.epsilon
        recorder = Recorder(self._game)

        def watch(states: States, games: Games, actions: Actions, earned: NDArray[np.float32]) -> None:
            self.rounds += 1
            recorder.watch(states, games, actions, earned)

        _, totals = play(self._game, seeds, self._players, seats, self._reward, watch)
        transitions = recorder.transitions(totals, learner.gamma, learner.n_step)
        own = totals[seats == 0]
        episode_return = float(own.mean() if own.size else totals.mean())
        return Rollout(ticket, transitions, self._version, episode_return, time.perf_counter() - started)


class Evaluator:
    """Plays the network on duplicate deals against players without one."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._settings = settings
        self._game = settings.load_game()
        self._network = acting_network(self._game, settings, device)

    def duels(self, weights: Weights, stream_name: str, deals: int) -> dict[str, Duel]:
        """The network against each of `evaluation.opponents`, on the deals of a stream of the run's seeds."""
        self._network.load_state_dict(weights)
        player = NetworkPlayer(self._game, self._network)
        seeds = stream(self._settings.seed, stream_name, 0, deals)
        opponents = self._settings.evaluation.opponents
        return {name: duel(self._game, player, named_player(self._game, name), seeds) for name in opponents}


class RolloutsLostError(SettingsError):
    """Nobody is there any more to play; the message says why, and the run goes on from its checkpoint."""

    exit_code = EXIT_REQUEUE


class Rollouts(Protocol):
    """Where tickets are played: in this process (`LocalRollouts`) or by Ray workers (`train.cluster`)."""

    def wants_weights(self) -> bool:
        """Whether newer weights may be published now."""

    def publish(self, version: int, weights: Weights) -> None:
        """Tickets submitted from now on are played with these weights."""

    def workers(self) -> int:
        """How many play beside the learner."""

    def room(self) -> int:
        """How many more tickets may be submitted now."""

    def submit(self, ticket: Ticket) -> None:
        """Have a ticket played."""

    def ready(self, wait: bool) -> list[Rollout]:
        """The rollouts that are done, each once; with `wait`, at least one, or none after a second."""

    def evaluate(self, tag: int, weights: Weights) -> None:
        """Start an evaluation of these weights; `tag` comes back with its result."""

    def evaluated(self, wait: bool) -> Iterable[tuple[int, dict[str, Duel]]]:
        """The evaluations that are done, each once; with `wait`, all that were started."""

    def describe(self) -> str:
        """One line on who plays."""

    def close(self) -> None:
        """Give back processes and memory."""


class LocalRollouts:
    """Plays every ticket at once in the learner's process: no Ray, and the same bits for the same seed."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._worker = RolloutWorker(settings, device)
        self._evaluator = Evaluator(settings, device)
        self._deals = settings.evaluation.deals
        self._done: list[Rollout] = []
        self._evaluations: list[tuple[int, dict[str, Duel]]] = []

    def wants_weights(self) -> bool:
        """See `Rollouts`. Every ticket is played with the newest."""
        return True

    def publish(self, version: int, weights: Weights) -> None:
        """See `Rollouts`."""
        self._worker.load(version, weights)

    def workers(self) -> int:
        """See `Rollouts`."""
        return 0

    def room(self) -> int:
        """See `Rollouts`."""
        return 1 - len(self._done)

    def submit(self, ticket: Ticket) -> None:
        """See `Rollouts`."""
        self._done.append(self._worker.play(ticket))

    def ready(self, wait: bool) -> list[Rollout]:
        """See `Rollouts`."""
        done, self._done = self._done, []
        return done

    def evaluate(self, tag: int, weights: Weights) -> None:
        """See `Rollouts`."""
        self._evaluations.append((tag, self._evaluator.duels(weights, "evaluation", self._deals)))

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        """See `Rollouts`."""
        done, self._evaluations = self._evaluations, []
        return done

    def describe(self) -> str:
        """See `Rollouts`."""
        return "local: games are played in the learner's process"

    def close(self) -> None:
        """See `Rollouts`."""
