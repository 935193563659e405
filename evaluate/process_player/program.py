"""A program that reads lines and writes lines, and how long busso waits for it."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress

from busso.evaluate.process_player import leash

_CHUNK, _LONGEST = 1 << 16, 1 << 20  # bytes: of a read, and of a line
_LAST_WORDS = 300  # bytes


class ProgramError(Exception):
    """The program has not answered: `reason` is `silent`, `ended` or `illegal`, an answer that cannot be used."""

    def __init__(self, reason: str, said: str) -> None:
        super().__init__(said)
        self.reason = reason


class Program:
    """A program without a shell, in a process group of its own that ends with this object or with this process."""

    def __init__(self, command: Sequence[str]) -> None:
        inherited, lifeline = os.pipe()
        errors = tempfile.TemporaryFile()  # noqa: SIM115 - open as long as the program
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", leash.__file__, str(inherited), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            bufsize=0,
            pass_fds=[inherited],
            start_new_session=True,
        )
        os.close(inherited)
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        self._errors, self._unsent, self._unread = errors, bytearray(), bytearray()
        self.close = weakref.finalize(self, _end, self._process, lifeline)

    def send(self, line: str) -> None:
        """Have a line written, while this waits for lines that come back."""
        self._unsent += line.encode() + b"\n"

    def flush(self) -> None:
        """Write what the program takes without waiting; the rest goes with the next `line`."""
        with suppress(BlockingIOError):
            while self._unsent:
                self._write()

    def line(self, seconds: float) -> bytes:
        """The next line of the program. Raises ProgramError if it takes longer than `seconds`."""
        end = time.monotonic() + seconds
        while b"\n" not in self._unread:
            if len(self._unread) > _LONGEST:
                raise ProgramError("illegal", f"no line, but {len(self._unread):,} bytes")
            poll = select.poll()
            poll.register(self._out, select.POLLIN)
            if self._unsent:
                poll.register(self._in, select.POLLOUT)
            ready = {number for number, _ in poll.poll(1000 * max(0.0, end - time.monotonic()))}
            if not ready:
                raise ProgramError("silent", f"no answer in {seconds:g} s")
            if self._out in ready:
                self._read()
            if self._in in ready:
                self._write()
        line, _, self._unread = self._unread.partition(b"\n")
        return bytes(line)

    def _read(self) -> None:
        read = os.read(self._out, _CHUNK)
        if not read:
            raise ProgramError("ended", "the program has ended")
        self._unread += read

    def _write(self) -> None:
        try:
            del self._unsent[: os.write(self._in, self._unsent[:_CHUNK])]
        except BrokenPipeError:
            self._unsent.clear()  # it reads no more; that it has ended shows where it is read

    @property
    def last_words(self) -> str:
        """The end of what it wrote to its standard error, in one line."""
        size = self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, size - _LAST_WORDS))
        lines = map(str.strip, self._errors.read().decode(errors="replace").split("\n"))
        return " / ".join(filter(None, lines))


def _end(process: subprocess.Popen[bytes], lifeline: int) -> None:
    os.close(lifeline)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with process:
        pass  # its pipes are closed, and its end is waited for
