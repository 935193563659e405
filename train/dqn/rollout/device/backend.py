"""RolloutBackend for games on the learner's GPU: from the deal to the replay buffer all data stay there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray

from cards.compiled.splitmix import stream
from cards.game import Game
from cards.gpu import SIMULATED, NoDeviceError, on_host
from cards.matches.duplicate import Duel, Outcome, Plays, duel, duel_of, seatings
from cards.stopping import Stop, Stoppable, StoppedError, never, stoppable
from command.settings.checks import SettingsError
from train.dqn.network.build import inference_network
from train.dqn.network.q_network import NetworkPlayer
from train.dqn.players.load import player_of
from train.dqn.rollout.backend import LocalBackend
from train.dqn.rollout.device.block import DeviceBlock
from train.dqn.rollout.device.returns import DeviceRounds
from train.dqn.rollout.request import Rollout, RolloutRequest, Weights
from train.dqn.rollout.seating import seated_players
from train.dqn.rollout.worker import episode_return, seeds_and_seats
from train.settings.dqn import GPU_GAMES, TrainSettings


class DeviceWorker:
    """As `RolloutWorker`, with the same games and choices, all of it on the device.

    Raises SettingsError where that cannot play.
    """

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        if device.type != "cuda" and not SIMULATED:
            raise SettingsError(
                "rollout",
                "kind=device plays on the learner's GPU, and the learner is on a CPU",
                "say rollout=threads, or device=cuda where there is one",
            )
        self._settings = settings
        self._game = settings.load_game()
        self._names = seated_players(settings)
        self.network = inference_network(self._game, settings, device)
        self._version = -1
        self._block = self._new_block(settings.rollout.games_on_device())

    def load(self, version: int, weights: Weights) -> None:
        if version != self._version:
            self.network.load_state_dict(weights)
            self._version = version

    def play(self, request: RolloutRequest, member: Weights | None = None) -> Rollout:
        """There is no league here, which the settings see to."""
        settings, learner = self._settings, self._settings.learner
        seeds, seats = seeds_and_seats(settings, self._game, self._names, request)
        if request.count > self._block.count:  # of a run that was begun with more
            self._block = self._new_block(request.count)
        block, recorded = self._block, DeviceRounds()
        with on_the_device(block.count):
            block.deal(seeds, seats, request.epsilon)
            for rounds in block.played():
                recorded.add(rounds)
            transitions = recorded.transitions(block.totals, learner.gamma, learner.n_step, block.games.stream)
            totals = block.totals[: request.count].cpu().numpy()
        earned = episode_return(totals, seats == 0, _occupied(self._game, block, request.count))
        return Rollout(request, transitions, self._version, earned)

    def _new_block(self, count: int) -> DeviceBlock:
        settings, game = self._settings, self._game
        reward = game.rewards[settings.reward_name(game)]
        with on_the_device(count):
            return DeviceBlock(game, count, self.network, self._names[1:], reward, settings.learner.watkins_cut)


class DeviceEvaluator:
    """As `Evaluator`, with the same duels, all of it on the device."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._seed, self._game = settings.seed, settings.load_game()
        self._opponents = settings.evaluation.opponents
        # Others, such as search, are no policies that a GPU could play: the games against them are not played there.
        self._on_device = [name for name in self._opponents if name == "random" or name in self._game.policies]
        key, others = "evaluation.opponents", [name for name in self._opponents if name not in self._on_device]
        self._others = {name: player_of(self._game, name, device, key) for name in others}
        self._plays = len(seatings(self._game))
        self._network = inference_network(self._game, settings, device)
        count = min(GPU_GAMES, settings.evaluation.deals * self._plays)
        with on_the_device(count):
            self._block = DeviceBlock(self._game, count, self._network, self._on_device)

    def duels(self, weights: Weights, stream_name: str, deals: int, stop: Stop = never) -> dict[str, Duel]:
        self._network.load_state_dict(weights)
        seeds, batch = stream(self._seed, stream_name, 0, deals), self._block.count // self._plays
        duels: dict[str, Duel] = {}
        for name in self._opponents:
            if name in self._on_device:
                number = 1 + self._on_device.index(name)
                duels[name] = duel_of(self._game, partial(self._played, number, stop), seeds, batch=batch)
            else:
                player = Stoppable(NetworkPlayer(self._network), stop)
                other = stoppable(self._game, name, self._others[name], stop)
                duels[name] = duel(self._game, player, other, seeds)
        return duels

    def _played(self, number: int, stop: Stop, plays: Plays) -> Outcome:
        """The games of a duel with this one of the opponents; the second player of each has the second generator."""
        block, count = self._block, len(plays.seeds)
        with on_the_device(block.count):
            block.deal(plays.seeds, plays.sides * np.uint8(number), 0.0, salts=[0] + [1] * len(self._on_device))
            for _ in block.played():
                if stop():
                    raise StoppedError
            return block.returns()[:count].cpu().numpy(), _occupied(self._game, block, count)


def _occupied(game: Game, block: DeviceBlock, count: int) -> NDArray[np.bool_]:
    """Which seats are taken in the first games of a block."""
    varies = "players" in (game.dtype.names or ())
    return game.occupied(on_host(block.games.states[:count]) if varies else np.zeros(count, game.dtype))


@contextmanager
def on_the_device(games: int) -> Iterator[None]:
    """Raise SettingsError for want of a GPU that plays, or of memory there."""
    try:
        yield
    except NoDeviceError as error:
        raise SettingsError("rollout", f"kind=device: {error}", "rollout=threads plays on the CPUs") from None
    except Exception as error:
        if "out of memory" not in str(error).lower().replace("_", " "):  # PyTorch's words, or Numba's
            raise
        problem = f"{games:,} games at a time do not fit on the GPU beside what is there"
        raise SettingsError("rollout.games", problem, "lower it, or replay.capacity") from error


class DeviceBackend(LocalBackend):
    """Plays every request at once on the learner's device, and evaluations too."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        super().__init__(settings, device, DeviceWorker(settings, device), DeviceEvaluator(settings, device))
        self._games = settings.rollout.games_on_device()

    def describe(self, stop_requested: Callable[[], bool]) -> str:
        return f"device: {self._games} games at a time on the learner's device"
