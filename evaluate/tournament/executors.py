"""Executor of a tournament's batches: this process or worker processes."""

import math
import multiprocessing
import os
import pickle
import signal
import traceback
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from typing import Any

from busso.cards.base.errors import UserError
from busso.command.system import end_with_parent
from busso.evaluate.tournament.batches import Batch, Played, TournamentWorker

# Remaining seconds of work that justify worker processes. Each takes 10 to 30 s to start and compile; if the CPUs are
# busy and extra processes gain nothing, at most a tenth of the time is lost.
WORTH_SECONDS = 300.0


class ProcessLostError(UserError):
    """Loss of a worker process; finished batches are in the folder, and the same command plays the rest."""


class Executor:
    """Executor of batches, in any order: this process plays them, or `count` processes with their own players.

    The processes start once `seconds_left()` is more than WORTH_SECONDS.
    """

    def __init__(
        self, worker: TournamentWorker, count: int, seconds_left: Callable[[], float] = lambda: math.inf
    ) -> None:
        self._worker, self._count, self._seconds_left = worker, count, seconds_left
        self._plays_with = pickle.dumps((worker.settings, worker.players))
        self.pool: ProcessPoolExecutor | None = None

    @property
    def workers(self) -> int:
        """Number of batches that can run at the same time."""
        if self.pool is None and self._count > 1 and self._seconds_left() > WORTH_SECONDS:
            context = multiprocessing.get_context("spawn")  # PyTorch's threads do not survive fork()
            self.pool = ProcessPoolExecutor(self._count, context, initializer=_begin, initargs=(os.getpid(),))
        return 1 if self.pool is None else self._count

    def submit(self, batch: Batch) -> Future[Played]:
        """Submit a batch; this process plays it before it returns. Raises ProcessLostError.

        Exceptions of players are raised here or, with processes, by the future.
        """
        if self.pool is None:
            future = Future[Played]()
            future.set_result(self._worker.play(batch))
            return future
        try:
            return self.pool.submit(play, self._plays_with, batch)
        except (BrokenProcessPool, OSError) as error:  # it starts a process, which may fail, also as another has died
            raise lost(error) from None

    def close(self) -> None:
        """Stop all processes and discard running batches."""
        if self.pool is None:
            return
        for process in list((self.pool._processes or {}).values()):
            process.kill()
        answers: Any = self.pool._result_queue
        if answers is not None:  # else shutdown would wait forever for the rest of a partly sent answer
            answers._writer.close()
        self.pool.shutdown(cancel_futures=True)


def lost(error: BrokenProcessPool | OSError) -> ProcessLostError:
    """Return the user error for a pool with a process that died or did not start."""
    hint = "repeat the command with folder= to play the rest; use fewer processes if memory ran out"
    return ProcessLostError("processes", f"a worker process died or did not start ({error})", hint)


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
