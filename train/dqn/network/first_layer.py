"""Which kernel the first layer of a network runs on: whichever this chip is faster with, by measurement."""

from __future__ import annotations

import copy
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from cards.compiled.splitmix import stream
from cards.game import Game
from cards.play import Actions, Decisions, play
from cards.players import RandomPlayer
from command.settings.checks import SettingsError
from train.dqn.network.q_network import FORWARD_ROWS, QNetwork
from train.settings.dqn import TrainSettings

if TYPE_CHECKING:
    from train.dqn.learner.learner import Learner

log = logging.getLogger("train")

_ADVANTAGE = 1.2  # of unpacking, to be chosen: what is about as fast shall not be chosen by chance
_ROUNDS = 20


@dataclass(frozen=True)
class Comparison:
    """Milliseconds of the first layer's passes over so many rows by either kernel."""

    gather: float
    unpack: float
    rows: int
    passes: str

    @property
    def gathers(self) -> bool:
        """Gather, unless unpacking is a good deal faster."""
        return self.gather <= _ADVANTAGE * self.unpack

    def __str__(self) -> str:
        times = f"gather {self.gather:.2f} ms, unpack {self.unpack:.2f} ms, {self.passes} of {self.rows} rows"
        return f"first layer by {'gather' if self.gathers else 'unpack'} ({times})"


def named(setting: str, device: torch.device) -> bool | None:
    """Whether `network.first_layer` says to gather; None where a measurement shall say. Raises SettingsError."""
    if device.type != "cpu":
        if setting == "gather":
            raise SettingsError("network.first_layer", "gather is for CPUs", "say auto or unpack")
        return False
    return None if setting == "auto" else setting == "gather"


class FirstLayer:
    """The kernel of a run's learner: as the settings or its checkpoint have it, or measured when it first starts."""

    def __init__(self, settings: TrainSettings, game: Game, learner: Learner) -> None:
        self._game = game
        self._learner = learner
        self._use(named(settings.network.first_layer, learner.device))
        if self.gathers is None and settings.rollout.kind == "local":
            self._use(True)  # the same bits on every start, whatever else the machine does

    def _use(self, gathers: bool | None) -> None:
        self.gathers = gathers  # None: not known yet
        if gathers is not None:
            self._learner.use_first_layer(gathers)

    def state_dict(self) -> dict[str, bool | None]:
        """Its part of the run's state."""
        return {"gathers": self.gathers}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on with what the run's state says, unless the settings say something."""
        if self.gathers is None:
            self._use(state.get("gathers", True))  # older versions did nothing else

    def settle(self) -> None:
        """Measure, if it has yet to be decided, and say so in the log."""
        if self.gathers is None:
            learner, rows = self._learner, self._learner.settings.batch_size
            compared = for_learning(self._game, learner.online, learner.precision, rows)
            log.info("learner: %s", compared)
            self._use(compared.gathers)


def for_learning(game: Game, network: QNetwork, dtype: torch.dtype, rows: int) -> Comparison:
    """Both kernels in an update of so many rows."""
    from train.dqn.learner.master_weights import (
        MixedNetwork,  # with it comes all that learns, for which players do not wait
    )

    words = _observations(game, rows)

    def passes(gathers: bool) -> Callable[[], object]:
        mixed = MixedNetwork(copy.deepcopy(network), dtype, gathers)
        layer, gradient = mixed.working.input, mixed.twin().working.input

        def once() -> None:
            seen, out = layer.trace(words)
            layer.gradient(seen, out, gradient.weight)

        return once

    return _compare(passes, rows, "forward and backward")


def for_playing(game: Game, network: QNetwork, dtype: torch.dtype) -> Comparison:
    """Both kernels in a forward pass of a player."""
    words = _observations(game, FORWARD_ROWS)

    def passes(gathers: bool) -> Callable[[], object]:
        layer = copy.deepcopy(network).to_format(dtype, gathers).input
        return lambda: layer(words)

    return _compare(passes, FORWARD_ROWS, "forward")


def _compare(passes: Callable[[bool], Callable[[], object]], rows: int, name: str) -> Comparison:
    """The best of many, alternating, because machines are noisy."""
    kernels = [passes(True), passes(False)]
    best = [float("inf"), float("inf")]
    for _ in range(_ROUNDS):
        for k, kernel in enumerate(kernels):
            started = time.perf_counter()
            kernel()
            best[k] = min(best[k], 1000 * (time.perf_counter() - started))
    return Comparison(best[0], best[1], rows, name)


def _observations(game: Game, rows: int) -> Tensor:
    """Packed observations of random play, from all stages of the game: how many bits are set decides."""
    seen: list[NDArray[np.uint64]] = []

    def watch(decisions: Decisions, actions: Actions, earned: NDArray[np.float32]) -> None:
        seen.append(decisions.observation)

    games = 64
    seeds = stream(0, "first layer", 0, games)
    play(game, seeds, [RandomPlayer()], np.zeros((games, game.seats), np.uint8), watch=watch)
    words = np.concatenate(seen)
    return torch.from_numpy(np.resize(words, (rows, game.words)).view(np.int64))
