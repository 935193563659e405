"""RolloutBackend for games on the learner's GPU: from the deal to the replay buffer nothing leaves it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray

from cards.gpu import SIMULATED, NoDeviceError, on_host
from cards.splitmix import stream
from command.checks import SettingsError
from train.dqn.device_block import DeviceBlock
from train.dqn.device_returns import DeviceRounds
from train.dqn.rollout import LocalBackend, Rollout, RolloutRequest, Weights, acting_network, episode_return
from train.dqn.seating import player_names, seating
from train.settings.dqn import TrainSettings


class DeviceWorker:
    """As `RolloutWorker`, with the same games and choices, all of it on the device.

    Raises SettingsError where that cannot play.
    """

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._settings = settings
        self._game = settings.load_game()
        self._device = device
        self._names = player_names(settings.behaviour)
        self.network = acting_network(self._game, settings, device)
        self._version = -1
        self.rounds = 0
        self._block = self._new_block(settings.rollout.games_on_device())

    def load(self, version: int, weights: Weights) -> None:
        """See `RolloutWorker`."""
        if version != self._version:
            self.network.load_state_dict(weights)
            self._version = version

    def play(self, request: RolloutRequest) -> Rollout:
        """See `RolloutWorker`."""
        settings, learner = self._settings, self._settings.learner
        name = f"episodes, attempt {request.attempt}" if request.attempt else "episodes"
        seeds = stream(settings.seed, name, request.first, request.count)
        seats = seating(settings.behaviour, self._names, request.first, seeds, self._game.seats)
        if request.count > self._block.count:  # of a run that was begun with more
            self._block = self._new_block(request.count)
        block, recorded = self._block, DeviceRounds()
        with _room(request.count):
            block.deal(seeds, seats, request.epsilon)
            running = True
            while running:
                block.play()
                recorded.add(block.rounds)
                running = bool(block.running.any())
            block.check()
            transitions = recorded.transitions(block.totals, learner.gamma, learner.n_step, block.games.stream)
        totals = block.totals[: request.count].cpu().numpy()
        earned = episode_return(totals, seats == 0, self._taken(request.count))
        return Rollout(request, transitions, self._version, earned)

    def _taken(self, count: int) -> NDArray[np.bool_]:
        varies = "players" in (self._game.dtype.names or ())
        states = on_host(self._block.games.states[:count]) if varies else np.zeros(count, self._game.dtype)
        return self._game.taken(states)

    def _new_block(self, count: int) -> DeviceBlock:
        settings = self._settings
        if self._device.type != "cuda" and not SIMULATED:
            raise SettingsError(
                "rollout: kind=device plays on the learner's GPU, and the learner is on a CPU; "
                "say rollout=threads, or device=cuda where there is one"
            )
        reward = self._game.rewards[settings.reward_name(self._game)]
        with _room(count):
            return DeviceBlock(self._game, count, self.network, self._names[1:], reward, settings.learner.n_step_cut)


@contextmanager
def _room(games: int) -> Iterator[None]:
    """Raise SettingsError for want of memory or of a GPU that plays."""
    try:
        yield
    except NoDeviceError as error:
        raise SettingsError(f"rollout: kind=device: {error}; rollout=threads plays on the CPUs") from None
    except torch.cuda.OutOfMemoryError:
        raise SettingsError(
            f"rollout.games: {games:,} games at a time do not fit on the GPU beside what is there; lower it, or "
            "replay.capacity"
        ) from None


class DeviceBackend(LocalBackend):
    """Plays every request at once on the learner's device; evaluations on the CPU, with values from there."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        super().__init__(settings, device, DeviceWorker(settings, device))
        self._games = settings.rollout.games_on_device()

    def describe(self, stop_requested: Callable[[], bool]) -> str:
        """See `RolloutBackend`."""
        return f"device: {self._games} games at a time on the learner's device"
