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
_NAP, _GAP = 0.02, 0.0002  # seconds between steps at a limited speed and at full speed
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
        self._thread: threading.Thread | None = None
        self.process: LearningProcess | None = None  # once it is compiled
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
        """Start or resume learning."""
        self._wanted.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, daemon=True)
            self._thread.start()

    def pause(self) -> None:
        """Pause after the current step, keeping the table."""
        self._wanted.clear()

    def close(self) -> None:
        """End the thread after the current step."""
        self._closed = True
        self._wanted.set()

    def _run(self) -> None:
        try:
            process = self._make()
            process.step(0)  # compiles
            self.process = process
            while not self._closed:
                self._learn(process)
                self._wanted.wait()
        except Exception as error:  # for the screen, since nothing waits for this thread
            self.failure = error

    def _learn(self, process: LearningProcess) -> None:
        """Learn until paused or closed, publishing snapshots periodically and at the end."""
        most, due, last = 256, 0.0, time.perf_counter()
        self._mark = (last, process.decisions)
        while self.running:
            speed, now = self._speed(), time.perf_counter()
            episodes = most if speed == FULL else min(max(1, round(speed * (now - last))), most)
            last = now
            with self._turn:
                started = time.perf_counter()
                process.step(episodes)
                took = time.perf_counter() - started
            most = max(1, min(int(episodes * _STEP_SECONDS / took), 2 * most, _MOST))
            time.sleep(_GAP if speed == FULL else _NAP)  # lets the other learners have their turns
            if time.perf_counter() >= due:
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
