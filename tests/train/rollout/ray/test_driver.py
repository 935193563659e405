"""Exchange between the learner and the Ray driver process: memory, messages, and targets of requests."""

import os
import pickle
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np
import pytest
import torch
from ray.exceptions import ActorDiedError, RayError, RayTaskError

from busso.base.errors import EXIT_REQUEUE
from busso.base.system import shared_file
from busso.cards.play import never
from busso.command.settings.checks import SettingsError
from busso.train.rollout.backend import BackendLostError
from busso.train.rollout.ray import actors, driver
from busso.train.rollout.ray.backend import RayBackend
from busso.train.rollout.ray.messages import Command, Order, Slot, Submit
from busso.train.rollout.ray.supervisor import descendants
from busso.train.rollout.request import EpisodeReturn, Rollout, RolloutRequest
from busso.train.rollout.transitions import LambdaTransitions, NStepTransitions, Transitions
from busso.train.rollout.worker import RolloutWorker
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


GONE = RayError("it is gone")


class Pool(driver.WorkerPool):
    """Pool whose actors' calls, oldest first in `beats` and `plays`, are answered by the test in place of Ray."""

    def __init__(self, runs: Path, patch: pytest.MonkeyPatch, workers: int) -> None:
        self.beats, self.plays, self.requests = list[Future[Any]](), list[Future[Any]](), list[RolloutRequest]()
        self.duels = list[Future[Any]]()
        self.said, self.events = list[tuple[Any, ...]](), list[Callable[[], None]]()
        ray = MagicMock()
        actor = ray.remote.return_value.return_value.options.return_value.remote.return_value
        actor.beat.remote.side_effect = lambda *_: reference(self.beats)
        actor.play.remote.side_effect = lambda request, *_: self.requests.append(request) or reference(self.plays)
        actor.duels.remote.side_effect = lambda *_: reference(self.duels)
        for name, stand_in in (("ray", ray), ("amounts", lambda: {"CPU": 4.0})):
            patch.setattr(driver, name, stand_in)
        chosen = settings(runs, "rollout=ray", f"rollout.workers={workers}").rollout
        super().__init__(driver.Order(chosen, 1, b""), lambda *said: self.said.append(said), self.events.append, 0)

    def answer(self, calls: list[Future[Any]], result: Any) -> None:
        """Answer the oldest of these calls with a result or an error."""
        call = calls.pop(0)
        (call.set_exception if isinstance(result, Exception) else call.set_result)(result)
        self.events.pop(0)()


def reference(calls: list[Future[Any]]) -> SimpleNamespace:
    calls.append(Future())
    return SimpleNamespace(future=lambda answer=calls[-1]: answer)


def test_each_actor_that_did_nothing_is_one_death(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends after `DEATHS_IN_A_ROW` more deaths than workers; actors that finished work do not count."""
    it = Pool(tmp_path, monkeypatch, workers=3)
    it.answer(it.beats, 0)
    for first in (0, 32):
        it.submit(RolloutRequest(first, 32, 0.5))
    it.answer(it.plays, ("a rollout", []))
    it.answer(it.plays, GONE)  # a useful actor
    for _ in range(driver.DEATHS_IN_A_ROW + 2):
        it.answer(it.beats, GONE)
    warnings = [text for name, text, *_ in it.said if name == "warning"]
    assert warnings == ["replacing a Ray worker: it is gone"] * (driver.DEATHS_IN_A_ROW + 3)
    with pytest.raises(SettingsError, match="in a row"):
        it.answer(it.beats, GONE)


def test_no_worker_with_other_code_joins_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    it = Pool(tmp_path, monkeypatch, workers=2)
    it.answer(it.beats, 0)
    monkeypatch.setattr(driver, "code_digest", lambda: "of a git pull")
    monkeypatch.setattr(driver, "ALIVE_SECONDS", -1.0)
    with pytest.raises(driver.WorkersLostError, match="code has changed since this start") as caught:
        it.answer(it.beats, GONE)
    assert caught.value.exit_code == EXIT_REQUEUE


def test_workers_that_fail_to_start_end_the_run_with_pythons_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even though others work."""
    error = ModuleNotFoundError("No module named 'busso.gone'")
    failed = ActorDiedError(
        RayTaskError("__init__", f"Traceback {'x ' * 200}\n{type(error).__name__}: {error}\n", error)
    )
    it = Pool(tmp_path, monkeypatch, workers=2)
    for _ in range(driver.DEATHS_IN_A_ROW - 1):
        it.answer(it.beats, failed)
    it.answer(it.beats, 0)  # a start between them
    for k in range(driver.DEATHS_IN_A_ROW - 1):
        it.submit(RolloutRequest(32 * k, 32, 0.5))
        it.answer(it.plays, ("a rollout", []))
        it.answer(it.beats, failed)
    said = {text for name, text, *_ in it.said if name == "warning"}
    assert said == {f"replacing a Ray worker: ModuleNotFoundError: {error}"}
    with pytest.raises(driver.WorkersLostError, match=f"do not start any more .ModuleNotFoundError: {error}"):
        it.answer(it.beats, failed)


def test_requests_of_the_dead_are_played_with_other_games(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the replacement has started, whatever the dead worker's other calls still answer."""
    it = Pool(tmp_path, monkeypatch, workers=1)
    it.answer(it.beats, 0)
    for request in (RolloutRequest(0, 32, 0.5), RolloutRequest(32, 32, 0.5, 1)):
        it.submit(request)
    it.answer(it.plays, GONE)
    it.answer(it.plays, ("a late rollout", []))
    it.look_after_workers()
    assert it.requests[2:] == []
    it.answer(it.beats, 0)
    it.look_after_workers()
    assert it.requests[2:] == [RolloutRequest(0, 32, 0.5, 1), RolloutRequest(32, 32, 0.5, 2)]
    assert not [said for said in it.said if said[0] == "rollout"]


def test_one_worker_evaluates_against_one_opponent_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once a worker has started; requests go to others meanwhile. If it dies, the next one plays what is left."""
    it = Pool(tmp_path, monkeypatch, workers=2)
    it.evaluate(7, {}, ["random", "greedy"])
    it.look_after_workers()
    assert not it.duels
    for _ in range(2):
        it.answer(it.beats, 0)
    it.look_after_workers()
    it.evaluate(8, {}, ["random"])
    assert len(it.duels) == 1
    for first in (0, 32):
        it.submit(RolloutRequest(first, 32, 0.5))
    assert sorted(len(worker.requests) for worker in it._workers) == [0, 2]
    it.answer(it.duels, b"random")
    it.answer(it.duels, GONE)
    it.look_after_workers()
    for answer in (b"greedy", b"again"):
        it.answer(it.duels, answer)
    assert not it.duels
    evaluated = [said for said in it.said if said[0] == "evaluated"]
    assert evaluated == [("evaluated", 7, b"random"), ("evaluated", 7, b"greedy"), ("evaluated", 8, b"again")]


class Gone:
    """Process that sends two rollouts and ends at the first request."""

    kind: type[Transitions] = LambdaTransitions

    def __init__(self, order: Order, says: Path, patience: float, hear: Callable[..., None]) -> None:
        self.slots = [Slot(shared_file()) for _ in range(2)]
        self.failure: Exception | None = None
        self._on_message = hear

    def listen(self) -> None:
        self._on_message("hello", "who plays")
        self._on_message("workers", 4)

    def say(self, command: Command) -> None:
        if not isinstance(command, Submit):
            return
        for k, slot in enumerate(self.slots):
            rollout = Rollout(RolloutRequest(k, 1, 0.0), None, 3, 0, EpisodeReturn(0.0, 0.0))
            self._on_message("rollout", rollout, k, slot.write([np.full(3, k, np.uint8)] * len(self.kind._fields)))
        self.failure = BackendLostError("rollout=ray", "gone")
        self._on_message("failed")


@pytest.mark.parametrize("kind", [LambdaTransitions, NStepTransitions])
def test_what_came_before_the_end_is_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Transitions]
) -> None:
    monkeypatch.setattr("busso.train.rollout.ray.backend.RayProcess", Gone)
    monkeypatch.setattr(Gone, "kind", kind)
    targets = LAMBDA_RETURNS if kind is LambdaTransitions else TARGET_NETWORK
    rollouts = RayBackend(settings(tmp_path, "rollout=ray", *targets))
    rollouts.evaluate(5, {}, never)
    assert rollouts.free_slots() == 8
    rollouts.submit(RolloutRequest(0, 1, 0.0))
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


# A driver that says hello, starts a process, and then hangs.
HANGS = """
def serve(channel, slots):
    link = Connection(channel)
    link.recv_bytes()
    subprocess.Popen(["sleep", "1000"])
    link.send(("hello", "nobody plays"))
    time.sleep(1000)

del os.pidfd_open  # as before Linux 5.3
sys.modules["busso.train.rollout.ray.driver"] = types.SimpleNamespace(serve=serve)
"""


@pytest.fixture
def idle_driver(tmp_path: Path, supervisor_runs: Callable[[str], None]) -> Iterator[RayBackend]:
    supervisor_runs(HANGS)
    with closing(RayBackend(settings(tmp_path, "rollout=ray", "rollout.heartbeat_seconds=2"))) as rollouts:
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
    (driver,) = (pid for pid in named(os.getpid(), HANGS) if len(descendants(pid)) == 1)
    started = descendants(driver)
    os.kill(driver, number)
    with pytest.raises(BackendLostError) as lost:
        until("the loss", lambda: idle_driver.ready(wait=True), 60)
    assert says in str(lost.value)
    idle_driver.close()
    assert not alive([driver, *started])


@pytest.mark.gpu
def test_a_worker_with_a_share_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its network is on the GPU; if values are far apart, it plays as on a CPU."""
    rules = settings(tmp_path, "rollout=ray", "rollout.gpus_per_worker=0.1")
    monkeypatch.setattr(actors.ray, "get", lambda reference: reference)
    here, allocated = RolloutWorker(rules, torch.device("cpu")), torch.cuda.memory_allocated()
    actor = actors.WorkerActor(pickle.dumps(rules))
    # The values are 0, 1, 2, ... by action, for every observation.
    weights = {name: torch.zeros(each.shape) for name, each in here.network.state_dict().items()}  # as published
    weights["head.bias"] = torch.arange(len(weights["head.bias"])).float()
    here.load(3, weights)
    assert torch.cuda.memory_allocated() > allocated
    arrays = {name: each.numpy() for name, each in weights.items()}
    request = RolloutRequest(0, 64, 0.3)
    rollout, columns = actor.play(request, 3, [arrays])
    assert rollout.weights_version == 3 and rollout.transitions is None
    for expected, found in zip(here.play(request).transitions, columns, strict=True):
        assert isinstance(found, np.ndarray) and np.array_equal(found, expected)
