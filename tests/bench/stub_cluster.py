"""Real Ray with workers that play nothing: what the learner's thread and the driver take for many of them."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import psutil
import torch

from command.settings.compose import compose
from tests.train.processes import named
from train.dqn.network.build import acting_network
from train.dqn.rollout.backend import LocalBackend
from train.dqn.rollout.ray.backend import RayBackend
from train.dqn.rollout.request import RolloutRequest, Weights
from train.settings.dqn import TrainSettings

CPU = torch.device("cpu")
GAMES, SECONDS_OF_GAMES = 512, 1.0  # what a stub worker plays in a second
DECISIONS_PER_GAME = 40  # of Tressette
DRIVER = "train.dqn.rollout.ray.supervisor"
_UPDATE = 0.002  # seconds between two looks at what came


class Seen(NamedTuple):
    """Of one stretch of time: all of them a second, or shares of one core."""

    workers: int
    messages: float
    bytes: float
    publications: float
    publishing: float  # share of the learner's thread
    hearing: float  # the same
    driver: float  # CPU of the process that speaks Ray


class Counted:
    """RolloutBackend, and the seconds that the thread of the learner is in each of its methods, but for waiting."""

    def __init__(self, rollouts: RayBackend) -> None:
        self._rollouts = rollouts
        self.seconds: dict[str, float] = {}
        self.calls: dict[str, int] = {}

    def __getattr__(self, name: str) -> Any:
        def timed(*arguments: Any) -> Any:
            started = time.perf_counter()
            try:
                return getattr(self._rollouts, name)(*arguments)
            finally:
                self.count(name, time.perf_counter() - started)

        return timed

    def count(self, name: str, seconds: float, calls: int = 1) -> None:
        """So many seconds more in the method."""
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        self.calls[name] = self.calls.get(name, 0) + calls


class StubCluster:
    """Stub workers, and what they need: `with stub_cluster(8) as cluster`."""

    def __init__(self, rollouts: RayBackend, workers: int, weights: torch.nn.Module) -> None:
        self.rollouts, self.workers = rollouts, workers
        self.weight_bytes = sum(tensor.nbytes for tensor in weights.state_dict().values())
        self._weights, self._first, self._version, self._out = weights, 0, 0, 0

    def watch(self, seconds: float, games: int) -> Seen:
        """Rollouts of so many games for a while, with new weights as often as the settings say; none with 0 games."""
        self._play(seconds / 4, games, Counted(self.rollouts))  # until all of them have something to do
        counted, driver, started = Counted(self.rollouts), _cpu_seconds(), time.perf_counter()
        came, size = self._play(seconds, games, counted)
        passed, driver = time.perf_counter() - started, _cpu_seconds() - driver
        while self._out:
            self._out -= len(self.rollouts.ready(True))
        publishing = counted.seconds.pop("publish", 0.0)
        return Seen(
            self.workers,
            came / passed,
            size / passed,
            counted.calls.get("publish", 0) / passed,
            publishing / passed,
            sum(counted.seconds.values()) / passed,
            driver / passed,
        )

    def _play(self, seconds: float, games: int, counted: Counted) -> tuple[int, int]:
        came, size, end = 0, 0, time.perf_counter() + seconds
        while time.perf_counter() < end:
            while games and counted.free_slots() > 0:
                if counted.wants_weights():
                    self._publish(counted)
                counted.submit(RolloutRequest(self._first, games, 0.05))
                self._first += games
                self._out += 1
            for rollout in counted.ready(False):
                came, self._out = came + 1, self._out - 1
                size += sum(array.nbytes for array in rollout.transitions)
            time.sleep(_UPDATE)
        return came, size

    def _publish(self, counted: Counted) -> None:
        self._version += 1
        started = time.perf_counter()
        acting: Weights = {name: tensor.clone() for name, tensor in self._weights.state_dict().items()}
        counted.count("publish", time.perf_counter() - started, calls=0)
        counted.publish(self._version, acting)


def _cpu_seconds() -> float:
    """That the process which speaks Ray, and its supervisor, have used so far."""
    used = 0.0
    for pid in named(os.getpid(), DRIVER):
        times = psutil.Process(pid).cpu_times()
        used += times.user + times.system
    return used


@contextmanager
def stub_cluster(workers: int) -> Iterator[StubCluster]:
    """A cluster of its own with so many stub workers, all started."""
    with tempfile.TemporaryDirectory() as runs:
        overrides = ["rollout=ray", f"runs={runs}", f"rollout.workers={workers}"]
        settings = compose(TrainSettings, "train", overrides)
        network = acting_network(settings.load_game(), settings, CPU).float()
        rollouts = RayBackend(settings, actors="tests.bench.stubs", orders=_orders())
        try:
            rollouts.publish(0, network.state_dict())
            while rollouts.workers() < workers:
                rollouts.ready(True)
            yield StubCluster(rollouts, workers, network)
        finally:
            rollouts.close()


def _orders() -> tuple[Any, ...]:
    """Real transitions of `GAMES` games, for the stubs to give."""
    local = LocalBackend(compose(TrainSettings, "train", ["rollout=local"]), CPU)
    local.submit(RolloutRequest(0, GAMES, 1.0))
    (rollout,) = local.ready(wait=True)
    return [array.copy() for array in rollout.transitions], GAMES, SECONDS_OF_GAMES
