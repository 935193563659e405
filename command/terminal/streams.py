"""Standard input, output and error that are closed or full: then messages to a person are dropped."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class ErrorStream:
    """Standard error. Where it does not take more, the rest goes nowhere: no place is left to say so."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text, if that is possible."""
        with self._may_fail():
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """The same of what waits to be written."""
        with self._may_fail():
            self._stream.flush()

    @contextmanager
    def _may_fail(self) -> Iterator[None]:
        try:
            yield
        except OSError:
            with suppress(OSError, AttributeError):
                to_nowhere(self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def is_gone(descriptor: int) -> bool:
    """Whether nothing can be written there any more: the reader of a pipe has ended, a terminal was closed."""
    asked = select.poll()
    asked.register(descriptor, select.POLLHUP)  # which macOS does not report unasked
    return bool(asked.poll(0))


def to_nowhere(descriptor: int) -> None:
    """Drop what is written there from now on."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def open_standard_files() -> None:
    """Where standard input, output or error is closed, open it to nowhere.

    Else a file that is opened later gets its number, and what is meant for a person is written into that file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            to_nowhere(descriptor)
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: PTH123, SIM115 - as Python opens it
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: PTH123, SIM115
