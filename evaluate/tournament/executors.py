"""The processes that play the batches of a tournament: this process, or several."""

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

# Of work that is left: processes, each of which compiles for itself, take 10 to 30 s to start. Where others keep the
# CPUs busy they bring nothing, and this then costs a tenth of the time at most.
WORTH_SECONDS = 300.0


class ProcessLostError(UserError):
    """A process that plays has ended; what was played is in the folder, and the same command plays the rest."""


class Executor(Protocol):
    """Plays batches in any order."""

    @property
    def workers(self) -> int:
        """Number of batches that can be played at the same time."""

    def submit(self, batch: Batch) -> Future[Played]:
        """Submit a batch. The future raises what a player raises."""

    def close(self) -> None:
        """End what was started; batches that are being played are lost."""


class Alone:
    """This process, at once. See `Executor`."""

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
    """`count` processes of this machine, each with a worker and players of its own. See `Executor`."""

    def __init__(self, settings: TournamentSettings, players: Mapping[str, ResolvedPlayer], count: int) -> None:
        self.workers, self._plays_with = count, pickle.dumps((settings, players))
        context = multiprocessing.get_context("spawn")  # a fork would inherit PyTorch's threads half alive
        self.pool = ProcessPoolExecutor(count, context, initializer=_begin, initargs=(os.getpid(),))

    def submit(self, batch: Batch) -> Future[Played]:
        """Raises ProcessLostError."""
        try:
            return self.pool.submit(play, self._plays_with, batch)
        except BrokenProcessPool as error:
            raise lost(error) from None

    def close(self) -> None:
        for process in list((self.pool._processes or {}).values()):
            process.kill()
        answers: Any = self.pool._result_queue
        if answers is not None:  # else the rest of an answer that was being sent is waited for, for ever
            answers._writer.close()
        self.pool.shutdown(cancel_futures=True)


class Growing:
    """This process, until what is left is worth the start of several. See `Executor`."""

    def __init__(
        self, worker: TournamentWorker, start: Callable[[], Executor], seconds_left: Callable[[], float]
    ) -> None:
        self._executor: Executor = Alone(worker)
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
    """The error in its place, for a person."""
    hint = "repeat the command with folder= to play the rest; use fewer processes if memory ran out"
    return ProcessLostError("processes", f"a worker process died ({error})", hint)


def play(plays_with: bytes, batch: Batch) -> Played:
    """Play a batch in another process, by the pickled settings and fingerprints of a worker.

    Raises UserError, or RuntimeError with the traceback of anything else, which may not be one that can be sent.
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
    """In a process of its own: Ctrl-C is for the parent, whose end is the end of this process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not end_with_parent(parent, signal.SIGKILL):
        os._exit(1)
