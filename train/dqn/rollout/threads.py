"""RolloutBackend by threads of this process: each plays a block of games, with values from the learner's device.

The compiled loops and PyTorch's operations run without Python's lock, so blocks use as many CPUs as there are. On a GPU
every thread has a stream of its own: while it computes the values of one block, the threads of others step their games.
"""

from __future__ import annotations

import copy
import queue
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from cards.matches.duplicate import Duel
from cards.stopping import Stop
from train.dqn.rollout.evaluator import Evaluator
from train.dqn.rollout.request import Rollout, RolloutRequest, Weights
from train.dqn.rollout.worker import RolloutWorker
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

    A request is played from its start to its end by one thread with the newest weights at its start, so its
    rollout does not depend on the number of threads. Weights are handed over with the event after which they are there,
    rollouts once their device is done with them. See `train.dqn.rollout.backend.RolloutBackend` for the methods, which
    are for the learner's thread. An exception in a thread is raised there, by `ready` or `evaluated`.
    """

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        rollout = settings.rollout
        self._device, self._on_gpu = device, device.type == "cuda"
        self._count = rollout.actor_threads_on(self._on_gpu, resources.cpus() - settings.learner.cpu_threads)
        self._games = rollout.games_on(self._on_gpu)
        self._deals = settings.evaluation.deals
        self._ending, self._compiling = threading.Event(), threading.Lock()
        self._members: dict[int, _HandedOver] = {}
        self._newest: _HandedOver | None = None
        self._playing: list[Future[Rollout]] = []
        self._evaluating: list[Future[tuple[int, dict[str, Duel]]]] = []
        # Not in the threads: initial weights are drawn by way of PyTorch's own generator, which all threads share.
        worker = partial(RolloutWorker, settings, device, self._on_gpu, self._ending.is_set)
        workers = [worker()]
        while len(workers) < self._count:  # with copies: what is chosen for a network is chosen once, for all blocks
            workers.append(worker(copy.deepcopy(workers[0].network)))
        self._evaluator = Evaluator(settings, device), self._new_stream()
        self._idle: queue.SimpleQueue[tuple[RolloutWorker, torch.cuda.Stream | None]] = queue.SimpleQueue()
        for each in workers:
            self._idle.put((each, self._new_stream()))
        if self._on_gpu:
            torch.cuda.synchronize(device)  # the networks were made on this thread's stream
        begin = partial(torch.set_num_threads, rollout.torch_threads)  # of each thread
        self._blocks = ThreadPoolExecutor(self._count, "block", begin)
        self._evaluations = ThreadPoolExecutor(1, "evaluation", begin)

    def _new_stream(self) -> torch.cuda.Stream | None:
        return torch.cuda.Stream(self._device) if self._on_gpu else None  # type: ignore[no-untyped-call]

    def _play(self, request: RolloutRequest, member: _HandedOver | None) -> Rollout:
        """Play a request, in a thread."""
        worker, stream = self._idle.get()
        try:
            with on_stream(stream):
                if not worker.rounds:
                    with self._compiling:  # the first thread compiles for all
                        worker.play(RolloutRequest(0, 1, 0.0))
                newest = self._newest
                if newest is not None and newest.version != worker.version:
                    worker.load(newest.version, newest.receive())
                rollout = worker.play(request, None if member is None else member.receive())
                if stream is not None:
                    stream.synchronize()  # from now on any stream may read them
                return rollout
        finally:
            self._idle.put((worker, stream))

    def _evaluate(self, order: _HandedOver) -> tuple[int, dict[str, Duel]]:
        """Evaluate weights, in a thread."""
        evaluator, stream = self._evaluator
        with on_stream(stream):
            return order.version, evaluator.duels(order.receive(), "evaluation", self._deals, self._ending.is_set)

    def wants_weights(self) -> bool:
        """Every request is played with the newest when it begins."""
        return True

    def publish(self, version: int, weights: Weights) -> None:
        """The weights are not copied: they may not be changed from now on."""
        self._newest = self._handed_over(version, weights)

    def enrol(self, members: dict[int, Weights]) -> None:
        there = self._members
        self._members = {n: there.get(n) or self._handed_over(n, weights) for n, weights in members.items()}

    def workers(self) -> int:
        """How many blocks are played at a time."""
        return self._count

    def games(self) -> int:
        return self._games

    def free_slots(self) -> int:
        """Requests that still fit: those that are played, and those that a block finds when it is done."""
        ahead = _AHEAD_ON_GPU if self._on_gpu else self._count
        return self._count + ahead - len(self._playing)

    def submit(self, request: RolloutRequest) -> None:
        member = None if request.member is None else self._members[request.member]
        self._playing.append(self._blocks.submit(self._play, request, member))

    def ready(self, wait: bool) -> list[Rollout]:
        """Raises what a thread raised, once all that was done before is given out."""
        done = _finished(self._playing, wait)
        for rollout in done:
            keep_for_this_stream([column for column in rollout.transitions if isinstance(column, Tensor)])
        return done

    def evaluate(self, tag: int, weights: Weights, stop_requested: Stop) -> None:
        """See `RolloutBackend`. `close` ends it."""
        self._evaluating.append(self._evaluations.submit(self._evaluate, self._handed_over(tag, weights)))

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        """Raises what a thread raised."""
        return _finished(self._evaluating, wait)

    def describe(self, stop_requested: Stop) -> str:
        where = torch.cuda.get_device_name(self._device) if self._on_gpu else "the CPU"
        blocks = "block" if self._count == 1 else "blocks"
        return f"threads: {self._count} {blocks} of {self._games} games on CPU threads, values on {where}"

    def close(self) -> None:
        """End all threads, in the middle of their games."""
        self._ending.set()
        for threads in (self._blocks, self._evaluations):
            threads.shutdown(cancel_futures=True)
        self._playing.clear()

    def _handed_over(self, version: int, weights: Weights) -> _HandedOver:
        made = torch.cuda.current_stream(self._device).record_event() if self._on_gpu else None
        return _HandedOver(version, weights, made)


def _finished(futures: list[Future[T]], wait: bool) -> list[T]:
    """Take out the results that are there; with `wait`, wait for one a second at most."""
    if wait and futures:
        wait_for(futures, WAIT_SECONDS, FIRST_COMPLETED)
    done = [future for future in futures if future.done()]
    whole = [future for future in done if future.exception() is None]
    if done and not whole:
        done[0].result()  # raises
    for future in whole:
        futures.remove(future)
    return [future.result() for future in whole]


def on_stream(stream: torch.cuda.Stream | None) -> AbstractContextManager[object]:
    """The stream for all that this thread asks of a GPU until the context ends; nothing on a CPU."""
    return nullcontext() if stream is None else torch.cuda.stream(stream)


def keep_for_this_stream(tensors: Sequence[Tensor]) -> None:
    """Memory of another stream is not to be used again before what this one has been asked so far is done.

    PyTorch's allocator knows only of the stream that a tensor was made on.
    """
    for tensor in tensors:
        if tensor.device.type == "cuda":
            tensor.record_stream(torch.cuda.current_stream(tensor.device))
