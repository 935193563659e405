"""Commands on a pseudo-terminal, whose screens are read through a terminal emulator."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios
import time
from collections.abc import Mapping, Sequence

import pyte

from tests.limits import seconds

_LIMIT = 120.0  # seconds of a command on an idle machine


def screens(
    module: str, arguments: Sequence[str] = (), columns: int = 100, rows: int = 30, env: Mapping[str, str] | None = None
) -> list[str]:
    """Run a module on a terminal and return each screen that differs from the one before, the last at its end."""
    pid, terminal = pty.fork()
    if pid == 0:
        try:
            # Not the environment of C, in which readline, which pytest imports, leaves a size that Rich would believe.
            own = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            own |= {"TERM": "xterm-256color", **(env or {})}
            os.execve(sys.executable, [sys.executable, "-m", module, *arguments], own)
        finally:
            os._exit(127)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    screen, found, began = pyte.Screen(columns, rows), [""], time.monotonic()
    stream = pyte.ByteStream(screen)
    try:
        while time.monotonic() - began < seconds(_LIMIT):
            if not select.select([terminal], [], [], 0.2)[0]:
                continue
            try:
                stream.feed(os.read(terminal, 65536))
            except OSError:  # the command has ended
                break
            if select.select([terminal], [], [], 0.02)[0]:  # in the middle of a screen
                continue
            now = "\n".join(line.rstrip() for line in screen.display).rstrip()
            if now != found[-1]:
                found.append(now)
        else:
            raise AssertionError(f"{module} runs on after {_LIMIT:.0f} s: {found[-1]}")
    finally:
        os.close(terminal)
        os.waitpid(pid, 0)
    found.append("\n".join(line.rstrip() for line in screen.display).rstrip())
    return found
