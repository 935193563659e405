"""Learning process in a background thread that can be started and paused."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from busso.play.blackjack_lab.learning import LearningProcess, TableSnapshot

_STEP_SECONDS = 0.004  # maximum duration of a step, for which changes have to wait
_MOST = 1 << 17  # maximum episodes in a step
_PUBLISH_SECONDS = 0.25  # seconds between snapshots ...
_PUBLISH_SHARE = 10  # ... or this multiple of a snapshot's duration, if longer
_NAP, _GAP = 0.02, 0.0002
FULL = 0  # unlimited speed


class BackgroundLearner:
    """Thread that runs the process built by `make`; it polls `speed()` for episodes per second.

    Only this thread steps the process; others read the immutable snapshots in `learned`. Learners that share a `turn`
    lock use one core together, which leaves another for the screen.
    """

    def __init__(self, make: Callable[[], LearningProcess], speed: Callable[[], int], turn: threading.Lock) -> None:
        self._make, self._speed = make, speed
        self._wanted, self._closed = threading.Event(), False
        self._turn = turn  # held while computing
        self._process: LearningProcess | None = None
        self._thread: threading.Thread | None = None
        self.learned: TableSnapshot | None = None  # the latest snapshot
        self.per_second = 0.0  # recent decisions per second
        self.failure: Exception | None = None  # the exception that ended the thread

    @property
    def running(self) -> bool:
        """True if it learns, or will once the rules are compiled."""
        return self._wanted.is_set() and not self._closed

    @property
    def preparing(self) -> bool:
        """True while the rules are being compiled, before the first episode."""
        return self.running and self.learned is None

    def start(self) -> None:
        """Start or resume learning; after a failure, start over."""
        self._wanted.set()
        if self._thread is None or self.failure is not None:
            self.failure = self.learned = self._process = None
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Pause after the current step, keeping the table."""
        self._wanted.clear()

    def change(self, job: Callable[[LearningProcess], None]) -> None:
        """Apply a change to the process between two steps, if it has been built."""
        if self._process is not None:
            with self._turn:
                job(self._process)

    def close(self) -> None:
        """End the thread after the current step."""
        self._closed = True
        self._wanted.set()

    def join(self) -> None:
        """Wait until a closed thread has ended."""
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            process = self._make()
            process.step(0)  # compiles
            self._process = process
            while not self._closed:
                self._learn(process)
                self._wanted.wait()
        except Exception as error:  # for the screen, since nothing waits for this thread
            self._wanted.clear()
            self.failure = error

    def _learn(self, process: LearningProcess) -> None:
        """Learn until paused or closed, publishing snapshots periodically and at the end."""
        budget, most, due = _Budget(), 256, 0.0
        self._mark = (time.perf_counter(), process.decisions)
        while self._wanted.is_set() and not self._closed:
            episodes = budget.take(self._speed(), most)
            if episodes == 0:
                time.sleep(_NAP)
            else:
                with self._turn:
                    started = time.perf_counter()
                    process.step(episodes)
                    took = time.perf_counter() - started
                most = max(1, min(int(episodes * _STEP_SECONDS / took), 2 * most, _MOST))
                time.sleep(_GAP)  # lets the other learners have their turns
            if process.episodes and time.perf_counter() >= due:
                due = self._publish(process)
        if process.episodes:
            self._publish(process)

    def _publish(self, process: LearningProcess) -> float:
        """Publish a snapshot of the table; return when the next is due."""
        with self._turn:
            started = time.perf_counter()
            self.learned = process.look()
        ended = time.perf_counter()
        since, decisions = self._mark
        self.per_second = (process.decisions - decisions) / max(started - since, 1e-6)
        self._mark = (started, process.decisions)
        return ended + max(_PUBLISH_SECONDS, _PUBLISH_SHARE * (ended - started))


class _Budget:
    """Number of episodes that a speed allows; unused ones expire."""

    def __init__(self) -> None:
        self._last, self._owed = time.perf_counter(), 0.0

    def take(self, speed: int, most: int) -> int:
        now = time.perf_counter()
        self._owed = min(self._owed + speed * (now - self._last), float(max(speed, 1)))
        self._last = now
        if speed == FULL:
            return most
        taken = min(int(self._owed), most)
        self._owed -= taken
        return taken
