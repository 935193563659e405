"""Signals that request a run to stop with a checkpoint."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, ClassVar

from busso.base.errors import EXIT_REQUEUE
from busso.base.system import heard
from busso.base.terminal import discard_output, is_gone


class StopRequest:
    """Context that handles stop signals; `signal` is the number of the first one received, or None.

    Outside the main thread it handles no signals.

    Ctrl-C, SIGTERM (`scancel`), SIGUSR1 (time limit or preemption) and SIGHUP (closed terminal, unless under `nohup`)
    request a stop. A following SIGTERM is ignored: schedulers send it while the checkpoint is being written. A second
    Ctrl-C ends the process immediately, or raises KeyboardInterrupt in `library_call`.

    A nested context starts with the outer one's signal and passes its own to the outer one: even if its run is
    complete, the next one must not begin.
    """

    in_library: ClassVar[bool] = False
    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)

    def __init__(self, answer: bytes = b"\nstopping with a checkpoint; Ctrl-C now ends at once\n") -> None:
        self._answer = answer  # printed at the first signal
        self.signal: int | None = None
        self._before: dict[int, Any] = {}
        self._mask: set[signal.Signals | int] = set()

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._before = {number: signal.signal(number, self._handle) for number in heard(self.SIGNALS)}
        if (outer := self._outer()) is not None:
            self.signal = outer.signal
        self._mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})  # deliver a pending signal
        return self

    def __exit__(self, *_: object) -> None:
        if self._before:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if (outer := self._outer()) is not None and outer.signal is None:
            outer.signal = self.signal

    def hand_on(self) -> None:
        """Raise a received signal again, for the code after the outermost context."""
        if self.signal is not None and self._outer() is None:
            signal.raise_signal(self.signal)

    def _outer(self) -> StopRequest | None:
        owner = getattr(self._before.get(signal.SIGTERM), "__self__", None)
        return owner if isinstance(owner, StopRequest) else None

    def requested(self) -> bool:
        """Return whether a signal was received."""
        return self.signal is not None

    def exit_code(self, again: bool) -> int:
        """Return the exit code after the signal: for SIGUSR1, 75 (requeue) if `again` and 1 otherwise."""
        if self.signal != signal.SIGUSR1:
            return 128 + (self.signal or 0)
        if again:
            return EXIT_REQUEUE
        print("error: this start made no progress, and neither would the next; give the job more time", file=sys.stderr)
        return 1

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            for descriptor in filter(is_gone, range(3)):
                discard_output(descriptor)  # otherwise the next print would raise an error
        if self.signal is not None:
            if number == signal.SIGINT and self.in_library:
                raise KeyboardInterrupt
            if number == signal.SIGINT:
                os._exit(128 + number)
            return
        self.signal = number
        # Not print(), which a signal may have interrupted.
        with suppress(OSError):
            os.write(2, self._answer)


@contextmanager
def library_call() -> Iterator[None]:
    """Make a second Ctrl-C raise KeyboardInterrupt, as the process belongs to a notebook or another program."""
    StopRequest.in_library = True
    try:
        yield
    finally:
        StopRequest.in_library = False


def hold_usr1() -> None:
    """Block SIGUSR1 until `StopRequest`: by default it would end the process silently."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


def ignore_signals() -> None:
    """Ignore signals sent to a whole job, whose main process ends this one; children do not inherit this."""
    for number in StopRequest.SIGNALS:
        signal.signal(number, lambda *_: None)
