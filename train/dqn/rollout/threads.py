"""RolloutBackend by threads of this process: each plays a block of games, with values from the learner's device.

The compiled loops and PyTorch's operations run without Python's lock, so blocks use as many CPUs as there are. On a GPU
every thread has a stream of its own: while it computes the values of one block, the threads of others step their games.
"""

from __future__ import annotations

import copy
import queue
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from cards.base.stopping import Stop, StoppedError
from cards.matches.duplicate import Duel
from train.dqn.rollout.evaluator import Evaluator
from train.dqn.rollout.worker import Rollout, RolloutRequest, RolloutWorker, Weights
from train.run.metrics import resources
from train.settings.dqn import TrainSettings

T = TypeVar("T")

WAIT_SECONDS = 1.0
# Requests beside those that are played. Few: they are long, and have the exploration of when they were made.
_AHEAD_ON_GPU = 2


class _HandedOver(NamedTuple):
    """Weights that another thread made on a stream of its own, and the event after which they are there."""

    version: int
    weights: Weights
    made: torch.cuda.Event | None

    def receive(self) -> Weights:
        """The weights, for work that this thread asks of the device from now on."""
        if self.made is not None:
            self.made.wait()
            keep_for_this_stream(list(self.weights.values()))
        return self.weights


class ThreadsBackend:
    """Blocks of games, each with a thread; and one thread that evaluates.

    A request is played from its start to its end by one thread with the newest weights at its start, so what comes of
    it does not depend on how many there are. Weights are handed over with the event after which they are there,
    rollouts once their device is done with them. See `train.dqn.rollout.backend.RolloutBackend` for the methods, which
    are for the learner's thread. An exception in a thread is raised there, by `ready` or `evaluated`.
    """

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        rollout = settings.rollout
        self._device, self._on_gpu = device, device.type == "cuda"
        self._threads_each = rollout.torch_threads
        self._count = rollout.actor_threads_on(self._on_gpu, resources.cpus() - settings.learner.threads)
        self._games = rollout.games_on(self._on_gpu)
        self._deals = settings.evaluation.deals
        self._changed = threading.Condition()  # guards the next three
        self._rollouts: deque[Rollout] = deque()
        self._evaluations: deque[tuple[int, dict[str, Duel]]] = deque()
        self._failure: BaseException | None = None
        self._ending = threading.Event()
        self._requests: queue.SimpleQueue[tuple[RolloutRequest, _HandedOver | None] | None] = queue.SimpleQueue()
        self._members: dict[int, _HandedOver] = {}
        self._to_evaluate: queue.SimpleQueue[_HandedOver | None] = queue.SimpleQueue()
        self._newest: _HandedOver | None = None
        self._out = self._evaluating = 0
        self._compiling = threading.Lock()
        # Not in the threads: initial weights are drawn by way of PyTorch's own generator, which is everybody's.
        worker = partial(RolloutWorker, settings, device, self._on_gpu, self._ending.is_set)
        workers = [worker()]
        while len(workers) < self._count:  # with copies: what is chosen for a network is chosen once, for all blocks
            workers.append(worker(copy.deepcopy(workers[0].network)))
        evaluator = Evaluator(settings, device)
        if self._on_gpu:
            torch.cuda.synchronize(device)  # the networks were made on this thread's stream
        jobs = [partial(self._play, worker) for worker in workers] + [partial(self._evaluate, evaluator)]
        self._threads = [threading.Thread(target=self._run, args=(job,), daemon=True) for job in jobs]
        for thread in self._threads:
            thread.start()

    # ------------------------------------------------------------------ in the threads

    def _run(self, job: Callable[[], None]) -> None:
        try:
            torch.set_num_threads(self._threads_each)  # of this thread
            with own_stream(self._device):
                job()
        except StoppedError:
            pass  # the backend is closed
        except BaseException as error:  # whatever it is, the learner's thread shall raise it
            with self._changed:
                self._failure = self._failure or error
                self._changed.notify_all()

    def _play(self, worker: RolloutWorker) -> None:
        with self._compiling:  # the first thread compiles for all
            worker.play(RolloutRequest(0, 1, 0.0))
        while (order := self._requests.get()) is not None:
            (request, member), newest = order, self._newest
            if newest is not None and newest.version != worker.version:
                worker.load(newest.version, newest.receive())
            rollout = worker.play(request, None if member is None else member.receive())
            if self._on_gpu:
                torch.cuda.current_stream(self._device).synchronize()  # from now on any stream may read them
            with self._changed:
                self._rollouts.append(rollout)
                self._changed.notify_all()

    def _evaluate(self, evaluator: Evaluator) -> None:
        while (order := self._to_evaluate.get()) is not None:
            duels = evaluator.duels(order.receive(), "evaluation", self._deals, self._ending.is_set)
            with self._changed:
                self._evaluations.append((order.version, duels))
                self._changed.notify_all()

    # ------------------------------------------------------------------ in the learner's thread

    def wants_weights(self) -> bool:
        """See `RolloutBackend`. Every request is played with the newest when it begins."""
        return True

    def publish(self, version: int, weights: Weights) -> None:
        """See `RolloutBackend`. The weights are not copied: nobody may change them from now on."""
        self._newest = self._handed_over(version, weights)

    def enrol(self, members: dict[int, Weights]) -> None:
        """See `RolloutBackend`."""
        there = self._members
        self._members = {n: there.get(n) or self._handed_over(n, weights) for n, weights in members.items()}

    def workers(self) -> int:
        """How many blocks are played at a time."""
        return self._count

    def games(self) -> int:
        """See `RolloutBackend`."""
        return self._games

    def free_slots(self) -> int:
        """Requests that still fit: those that are played, and those that a block finds when it is done."""
        ahead = _AHEAD_ON_GPU if self._on_gpu else self._count
        return 0 if self._failure else self._count + ahead - self._out

    def submit(self, request: RolloutRequest) -> None:
        """See `RolloutBackend`."""
        self._out += 1
        self._requests.put((request, None if request.member is None else self._members[request.member]))

    def ready(self, wait: bool) -> list[Rollout]:
        """See `RolloutBackend`. Raises what a thread raised, once all that was done before is given out."""
        done = self._taken(self._rollouts, wait)
        self._out -= len(done)
        for rollout in done:
            columns: Sequence[object] = rollout.transitions
            keep_for_this_stream([column for column in columns if isinstance(column, Tensor)])
        return done

    def evaluate(self, tag: int, weights: Weights, stop_requested: Stop) -> None:
        """See `RolloutBackend`. `close` ends it."""
        self._evaluating += 1
        self._to_evaluate.put(self._handed_over(tag, weights))

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        """See `RolloutBackend`. Raises what a thread raised."""
        done = self._taken(self._evaluations, wait and self._evaluating > 0)
        self._evaluating -= len(done)
        return done

    def describe(self, stop_requested: Stop) -> str:
        """See `RolloutBackend`."""
        where = torch.cuda.get_device_name(self._device) if self._on_gpu else "the CPU"
        blocks = "block" if self._count == 1 else "blocks"
        return f"threads: {self._count} {blocks} of {self._games} games on CPU threads, values on {where}"

    def close(self) -> None:
        """End all threads, in the middle of their games."""
        self._ending.set()
        for _ in range(self._count):
            self._requests.put(None)
        self._to_evaluate.put(None)
        for thread in self._threads:
            thread.join()
        self._rollouts.clear()

    def _handed_over(self, version: int, weights: Weights) -> _HandedOver:
        made = torch.cuda.current_stream(self._device).record_event() if self._on_gpu else None
        return _HandedOver(version, weights, made)

    def _taken(self, queued: deque[T], wait: bool) -> list[T]:
        with self._changed:
            if wait:
                self._changed.wait_for(lambda: queued or self._failure, WAIT_SECONDS)
            done = list(queued)
            queued.clear()
            if not done and self._failure is not None:
                raise self._failure
        return done


def own_stream(device: torch.device) -> AbstractContextManager[object]:
    """A stream for all that this thread asks of a GPU until the context ends; nothing on a CPU."""
    if device.type != "cuda":
        return nullcontext()
    return torch.cuda.stream(torch.cuda.Stream(device))  # type: ignore[no-untyped-call]


def keep_for_this_stream(tensors: Sequence[Tensor]) -> None:
    """Memory of another stream is not to be used again before what this one has been asked so far is done.

    PyTorch's allocator knows only of the stream that a tensor was made on.
    """
    for tensor in tensors:
        if tensor.device.type == "cuda":
            tensor.record_stream(torch.cuda.current_stream(tensor.device))
