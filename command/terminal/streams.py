"""Standard streams that may be closed, full, or lack characters, without failing on text for people."""

import errno
import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any


class OutputStream:
    """Standard output: unencodable characters become `?`, and a closed stream raises OSError, as a full one does."""

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
        """Flush, if supported. Raises OSError."""
        with self._as_os_error():
            getattr(self._stream, "flush", bool)()

    def isatty(self) -> bool:
        """Return whether this is a terminal; an object that replaced a standard stream may lack the method."""
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
    """Standard error: when it cannot be written, discard the rest, since nowhere is left to report it."""

    @contextmanager
    def _as_os_error(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError):
            with suppress(OSError, AttributeError, ValueError):
                discard_output(self._stream.fileno())


def is_gone(descriptor: int) -> bool:
    """Return whether nothing can be written any more: a pipe lost its reader, or a terminal was closed."""
    asked = select.poll()
    asked.register(descriptor, select.POLLHUP)  # macOS reports it only if requested
    return bool(asked.poll(0))


def discard_output(descriptor: int) -> None:
    """Redirect a descriptor to /dev/null."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != descriptor:
        os.dup2(nowhere, descriptor)
        os.close(nowhere)


def open_standard_files() -> None:
    """Open closed standard streams on /dev/null: a later file would get their number, and the output with it."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            discard_output(descriptor)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - as Python opens it
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
