"""Signals that ask a run to end with a checkpoint."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import Any, ClassVar

from busso.command.system import heard
from busso.command.terminal.streams import is_gone, to_nowhere

# What `sysexits.h` calls a temporary failure: the same command resumes from the checkpoint. Job scripts requeue on it.
EXIT_REQUEUE = 75


class StopRequest:
    """Use as a context; `signal` is the number of the first signal that came, or None.

    In another thread than the main one it hears no signal: they remain what they are for the process.

    Ctrl-C, SIGTERM (`scancel`), SIGUSR1 (the time limit is near, or the job is preempted) and SIGHUP (the terminal is
    closed; `nohup` keeps it from coming) ask for an end. A SIGTERM that follows does no harm: schedulers send it while
    the checkpoint is being written. A second Ctrl-C ends the process at once, or `library_call`.

    One inside of another has what came before it, and leaves to the outer one what came to it: a run that is complete
    all the same is no reason to begin the next.
    """

    in_library: ClassVar[bool] = False
    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1, signal.SIGHUP)

    def __init__(self, answer: bytes = b"\nstopping with a checkpoint; Ctrl-C now ends at once\n") -> None:
        self._answer = answer  # to the first signal, on the screen
        self.signal: int | None = None
        self._before: dict[int, Any] = {}
        self._mask: set[signal.Signals | int] = set()

    def __enter__(self) -> StopRequest:
        if threading.current_thread() is not threading.main_thread():
            return self
        self._before = {number: signal.signal(number, self._handle) for number in heard(self.SIGNALS)}
        if (outer := self._outer()) is not None:
            self.signal = outer.signal
        self._mask = signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1})  # one that came before comes now
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before:
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if (outer := self._outer()) is not None and outer.signal is None:
            outer.signal = self.signal

    def hand_on(self) -> None:
        """Raise a signal that came inside of the context again, for the code after it."""
        if self.signal is not None and self._outer() is None:
            signal.raise_signal(self.signal)

    def _outer(self) -> StopRequest | None:
        owner = getattr(self._before.get(signal.SIGTERM), "__self__", None)
        return owner if isinstance(owner, StopRequest) else None

    def requested(self) -> bool:
        """True once a signal has come."""
        return self.signal is not None

    def exit_code(self, again: bool) -> int:
        """For a process that ended because of the signal: 75 asks a job script to start it `again`, 1 does not."""
        if self.signal != signal.SIGUSR1:
            return 128 + (self.signal or 0)
        if not again:
            print(
                "error: this start made no progress, and neither would the next; give the job more time",
                file=sys.stderr,
            )
        return EXIT_REQUEUE if again else 1

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            for descriptor in filter(is_gone, range(3)):
                to_nowhere(descriptor)  # else the next line for a person would be an error
        if self.signal is not None:
            if number == signal.SIGINT and self.in_library:
                raise KeyboardInterrupt
            if number == signal.SIGINT:
                os._exit(128 + number)
            return
        self.signal = number
        # Not print, which may be in the middle of a line of its own.
        with suppress(OSError):
            os.write(2, self._answer)


@contextmanager
def library_call() -> Iterator[None]:
    """Make a second Ctrl-C raise KeyboardInterrupt: the process is a notebook's or another program's."""
    StopRequest.in_library = True
    try:
        yield
    finally:
        StopRequest.in_library = False


def hold_usr1() -> None:
    """Let SIGUSR1 wait for `StopRequest`: until then its default would end the process without a word."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})


def ignore_signals() -> None:
    """Ignore what a terminal or a scheduler sends to a whole job: its main process saves, and then ends this one.

    By handlers, which what is started from here does not inherit.
    """
    for number in StopRequest.SIGNALS:
        signal.signal(number, lambda *_: None)
