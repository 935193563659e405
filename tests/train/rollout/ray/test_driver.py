"""Exchange between the learner and the Ray driver process: memory, messages, and targets of requests."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from busso.base.system import shared_file
from busso.cards.play import never
from busso.command.settings.checks import SettingsError
from busso.train.rollout.backend import BackendLostError
from busso.train.rollout.ray.backend import RayBackend
from busso.train.rollout.ray.driver import DEATHS_IN_A_ROW, WorkerPool, _Actor
from busso.train.rollout.ray.messages import Order, Slot
from busso.train.rollout.ray.supervisor import descendants
from busso.train.rollout.request import EpisodeReturn, Rollout, RolloutRequest
from busso.train.rollout.transitions import LambdaTransitions, NStepTransitions, Transitions
from tests.limits import until
from tests.train.processes import alive, named
from tests.train.runs import LAMBDA_RETURNS, TARGET_NETWORK, settings


def test_arrays_come_through_shared_memory_as_they_were() -> None:
    """They are copies, which later arrays do not overwrite."""
    file = shared_file()
    writer, reader = Slot(file), Slot(os.dup(file))
    numbers, written, read = np.random.default_rng(1), list[Any](), list[Any]()
    arrays: list[np.ndarray]
    for rows in (3, 0, 1000, 7, 100_000):
        arrays = [
            numbers.integers(0, 2**63, (rows, 7)).astype(np.uint64),
            numbers.integers(0, 60, rows).astype(np.uint8),
            numbers.random(rows, np.float32)[::-1],
            np.asfortranarray(numbers.random((rows, 3))),
        ]
        written += arrays
        read += reader.read(writer.write(arrays))
    for a, b in zip(written, read, strict=True):
        assert a.dtype == b.dtype and a.shape == b.shape and (a == b).all()


class Submitted(WorkerPool):
    """Pool without Ray that records its requests and messages."""

    def __init__(self, workers: int) -> None:
        self.played: list[Any] = []
        self.said: list[str] = []
        self._workers = {_Actor(None, ready=True): None for _ in range(workers)}
        self._evaluator = _Actor(None)
        self._fruitless, self._lost = 0, []
        self._looked = time.monotonic()
        self._rollout: Any = SimpleNamespace(look_seconds=lambda workers: 3600.0)  # no poll is due
        self._tell: Any = lambda name, text: self.said.append(text)

    def submit(self, request: Any) -> None:
        self.played.append(request)


def test_each_actor_that_did_nothing_is_one_death() -> None:
    """The run ends after `DEATHS_IN_A_ROW` more deaths than workers; actors that finished work do not count."""
    pool = Submitted(workers=3)
    for _ in range(DEATHS_IN_A_ROW + 2):
        pool._count_death(_Actor(None), "it is gone")
    pool._count_death(_Actor(None, useful=True), "it is gone")
    assert pool.said == ["replacing a Ray worker: it is gone"] * (DEATHS_IN_A_ROW + 3)
    with pytest.raises(SettingsError, match="in a row"):
        pool._count_death(_Actor(None), "it is gone")


def test_requests_of_the_dead_are_played_with_other_games() -> None:
    pool = Submitted(workers=1)
    pool._lost += [RolloutRequest(0, 32, 0.5), RolloutRequest(32, 32, 0.5, 1)]
    pool.look_after_workers()
    assert pool.played == [RolloutRequest(0, 32, 0.5, 1), RolloutRequest(32, 32, 0.5, 2)]


class Gone:
    """Process that ends after sending two rollouts."""

    kind: type[Transitions] = LambdaTransitions

    def __init__(self, order: Order, says: Path, patience: float, hear: Callable[..., None]) -> None:
        self.slots = [Slot(shared_file()) for _ in range(2)]
        self.failure: Exception | None = None
        self._on_message = hear

    def listen(self) -> None:
        self._on_message("hello", "who plays")

    def end(self) -> None:
        for k, slot in enumerate(self.slots):
            rollout = Rollout(RolloutRequest(k, 1, 0.0), None, 3, 0, EpisodeReturn(0.0, 0.0))
            self._on_message("rollout", rollout, k, slot.write([np.full(3, k, np.uint8)] * len(self.kind._fields)))
        self.failure = BackendLostError("rollout=ray", "gone")
        self._on_message("failed")

    def say(self, name: str, *message: Any) -> None:
        pass


@pytest.mark.parametrize("kind", [LambdaTransitions, NStepTransitions])
def test_what_came_before_the_end_is_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Transitions]
) -> None:
    monkeypatch.setattr("busso.train.rollout.ray.backend.RayProcess", Gone)
    monkeypatch.setattr(Gone, "kind", kind)
    targets = LAMBDA_RETURNS if kind is LambdaTransitions else TARGET_NETWORK
    rollouts = RayBackend(settings(tmp_path, "rollout=ray", *targets))
    rollouts._on_message("workers", 4)
    rollouts.evaluate(5, {}, never)
    assert rollouts.free_slots() == 8
    rollouts._process.end()  # type: ignore[attr-defined]
    assert rollouts.free_slots() == 0
    with pytest.raises(BackendLostError):
        rollouts.evaluated(wait=True)
    found = [rollouts.ready(wait=k == 1)[0].transitions for k in range(2)]
    assert [each.action.tolist() for each in found] == [[0, 0, 0], [1, 1, 1]] and isinstance(found[0], kind)
    with pytest.raises(BackendLostError):
        rollouts.ready(wait=False)


def test_weights_are_wanted_once_in_an_interval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the learner's messages would grow with its updates."""
    monkeypatch.setattr("busso.train.rollout.ray.backend.RayProcess", Gone)
    now = iter([50.0, 50.3, 50.41])
    rollouts = RayBackend(settings(tmp_path, "rollout=ray", "rollout.publish_ms=400"))
    assert rollouts.wants_weights()
    monkeypatch.setattr("busso.train.rollout.ray.backend.time", SimpleNamespace(monotonic=lambda: next(now)))
    rollouts.publish(1, {})
    assert [rollouts.wants_weights(), rollouts.wants_weights()] == [False, True]


# The real supervisor with a driver that says hello, starts a process, and then hangs.
_SUPERVISOR = """
import os, pathlib, subprocess, sys, time, types
from multiprocessing.connection import Connection
from busso.train.rollout.ray import supervisor

def serve(channel, slots):
    link = Connection(channel)
    link.recv_bytes()
    subprocess.Popen(["sleep", "1000"])
    link.send(("hello", "nobody plays"))
    time.sleep(1000)

del os.pidfd_open  # as before Linux 5.3
sys.modules["busso.train.rollout.ray.driver"] = types.SimpleNamespace(serve=serve)
lifeline, channel, *slots = map(int, sys.argv[2:])
sys.exit(supervisor.main(pathlib.Path(sys.argv[1]), lifeline, channel, slots))
"""


@pytest.fixture
def idle_driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayBackend]:
    def popen(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
        assert command[1:3] == ["-m", "busso.train.rollout.ray.supervisor"]
        return start([command[0], "-c", _SUPERVISOR, *command[3:]], **options)

    with monkeypatch.context() as patch:
        start = subprocess.Popen
        patch.setattr(subprocess, "Popen", popen)
        rollouts = RayBackend(settings(tmp_path, "rollout=ray", "rollout.heartbeat_seconds=2"))
    with closing(rollouts):
        assert rollouts.describe(lambda: False) == "nobody plays"
        yield rollouts


@pytest.mark.parametrize(
    ("number", "says"),
    [
        (signal.SIGKILL, "Ray terminated its process with exit code 137"),
        pytest.param(signal.SIGSTOP, "its process has not responded for 2 s", marks=pytest.mark.slow),
    ],
)
def test_a_driver_that_is_killed_or_hangs_is_given_up(idle_driver: RayBackend, number: int, says: str) -> None:
    """The processes that it started end, too."""
    (driver,) = (pid for pid in named(os.getpid(), _SUPERVISOR) if len(descendants(pid)) == 1)
    started = descendants(driver)
    os.kill(driver, number)
    with pytest.raises(BackendLostError) as lost:
        until("the loss", lambda: idle_driver.ready(wait=True), 60)
    assert says in str(lost.value)
    idle_driver.close()
    assert not alive([driver, *started])
