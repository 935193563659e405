"""Executors of a tournament's batches: this process or worker processes."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from typing import Any, Protocol

from busso.command.errors import UserError
from busso.command.system import end_with_parent
from busso.evaluate.tournament.batches import Batch, Played, TournamentWorker
from busso.evaluate.tournament.settings import TournamentSettings
from busso.train.dqn.players.resolve import ResolvedPlayer

# Remaining seconds of work that justify worker processes. Each takes 10 to 30 s to start and compile; if the CPUs are
# busy and extra processes gain nothing, at most a tenth of the time is lost.
WORTH_SECONDS = 300.0


class ProcessLostError(UserError):
    """A worker process died; finished batches are in the folder, and the same command plays the rest."""


class Executor(Protocol):
    """Executor of batches, in any order."""

    @property
    def workers(self) -> int:
        """Number of batches that can run at the same time."""

    def submit(self, batch: Batch) -> Future[Played]:
        """Submit a batch. The future re-raises exceptions of players."""

    def close(self) -> None:
        """Stop all workers and discard running batches."""


class InProcess:
    """Executor in this process; `submit` plays the batch before it returns. See `Executor`."""

    workers = 1

    def __init__(self, worker: TournamentWorker) -> None:
        self._worker = worker

    def submit(self, batch: Batch) -> Future[Played]:
        future = Future[Played]()
        future.set_result(self._worker.play(batch))
        return future

    def close(self) -> None:
        """See `Executor`."""


class Processes:
    """Executor with `count` processes on this machine, each with its own worker and players. See `Executor`."""

    def __init__(self, settings: TournamentSettings, players: Mapping[str, ResolvedPlayer], count: int) -> None:
        self.workers, self._plays_with = count, pickle.dumps((settings, players))
        context = multiprocessing.get_context("spawn")  # PyTorch's threads do not survive fork()
        self.pool = ProcessPoolExecutor(count, context, initializer=_begin, initargs=(os.getpid(),))

    def submit(self, batch: Batch) -> Future[Played]:
        """Submit a batch. Raises ProcessLostError."""
        try:
            return self.pool.submit(play, self._plays_with, batch)
        except BrokenProcessPool as error:
            raise lost(error) from None

    def close(self) -> None:
        for process in list((self.pool._processes or {}).values()):
            process.kill()
        answers: Any = self.pool._result_queue
        if answers is not None:  # else shutdown would wait forever for the rest of a partly sent answer
            answers._writer.close()
        self.pool.shutdown(cancel_futures=True)


class AutoScaling:
    """Executor in this process that switches to `start()` once more than WORTH_SECONDS are left. See `Executor`."""

    def __init__(
        self, worker: TournamentWorker, start: Callable[[], Executor], seconds_left: Callable[[], float]
    ) -> None:
        self._executor: Executor = InProcess(worker)
        self._start: Callable[[], Executor] | None = start
        self._seconds_left = seconds_left

    @property
    def workers(self) -> int:
        if self._start is not None and self._seconds_left() > WORTH_SECONDS:
            self._executor, self._start = self._start(), None
        return self._executor.workers

    def submit(self, batch: Batch) -> Future[Played]:
        return self._executor.submit(batch)

    def close(self) -> None:
        self._executor.close()


def lost(error: BrokenProcessPool) -> ProcessLostError:
    """Return the user error for a broken pool."""
    hint = "repeat the command with folder= to play the rest; use fewer processes if memory ran out"
    return ProcessLostError("processes", f"a worker process died ({error})", hint)


def play(plays_with: bytes, batch: Batch) -> Played:
    """Play a batch in a worker process, given the worker's pickled settings and players.

    Raises UserError, or RuntimeError with the traceback of any other exception, which might not be picklable.
    """
    try:
        return _worker(plays_with).play(batch)
    except UserError:
        raise
    except Exception:
        raise RuntimeError(traceback.format_exc()) from None


@cache
def _worker(plays_with: bytes) -> TournamentWorker:
    return TournamentWorker(*pickle.loads(plays_with))


def _begin(parent: int) -> None:
    """Set up a worker process: leave Ctrl-C to the parent, and die with it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not end_with_parent(parent, signal.SIGKILL):
        os._exit(1)
