"""Standard input, output and error that are closed or full, or lack letters: no text for a person is an error."""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class OutputStream:
    """Standard output. Letters that its encoding lacks are `?`, and one that is closed fails as one that is full."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write the text. Raises OSError."""
        with self._as_os_error():
            try:
                self._stream.write(text)
            except UnicodeEncodeError as error:
                encoding = getattr(self._stream, "encoding", None) or error.encoding
                self._stream.write(text.encode(encoding, "replace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Flush it, if it can be. Raises OSError."""
        with self._as_os_error():
            getattr(self._stream, "flush", bool)()

    def isatty(self) -> bool:
        """Return whether a person reads it; an object that replaced a standard stream may have no such method."""
        with suppress(ValueError):
            return bool(getattr(self._stream, "isatty", bool)())
        return False

    @contextmanager
    def _as_os_error(self) -> Iterator[None]:
        try:
            yield
        except ValueError as error:  # it is closed
            raise OSError(errno.EBADF, str(error)) from None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class ErrorStream(OutputStream):
    """Standard error. Where it does not take more, the rest goes nowhere: no place is left to say so."""

    @contextmanager
    def _as_os_error(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError):
            with suppress(OSError, AttributeError, ValueError):
                to_nowhere(self._stream.fileno())


def is_gone(descriptor: int) -> bool:
    """Return whether nothing can be written any more: the reader of a pipe has ended, or a terminal was closed."""
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
    """Open standard input, output or error to nowhere where they are closed.

    Else a file that is opened later gets its number, and what is meant for a person is written into that file.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            to_nowhere(descriptor)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as Python opens it
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
