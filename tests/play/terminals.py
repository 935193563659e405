"""`busso play` at a new terminal."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from pathlib import Path

from tests.limits import seconds, until
from tests.play.people import ENVIRONMENT

_CODES = re.compile(r"\x1b(?:\[[0-9;?<>=]*[a-zA-Z]|\].*?(?:\x1b\\|\x07)|P.*?\x1b\\|[()][A-Z0-9]|[=>])", re.S)
# The terminal becomes the new session's controlling one, so that closing it sends SIGHUP.
_OWN_TERMINAL = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.argv[0] = "play"
runpy.run_module("busso.play", run_name="__main__")
"""


class Terminal:
    """The command at a terminal of this size, which is its session's controlling terminal, as with ssh."""

    def __init__(self, folder: Path, *arguments: str, size: tuple[int, int] = (80, 24), term: str = "xterm") -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN_TERMINAL, *arguments],
            cwd=folder,
            env=ENVIRONMENT | {"TERM": term},
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        self._heard = ""

    @property
    def said(self) -> str:
        """Return the output without control sequences."""
        return _CODES.sub("", self._heard)

    def listen(self) -> bool:
        """Read output; return False once the other side has closed."""
        ready, _, _ = select.select([self._main], [], [], 0.05)
        if ready:
            try:
                self._heard += os.read(self._main, 65536).decode(errors="replace")
            except OSError:  # end of a terminal on Linux
                return False
        return True

    def wait_for(self, text: str) -> None:
        until(f"{text!r} at the terminal", lambda: self.listen() and text in self.said, 60, every=0)

    def press(self, keys: str) -> None:
        """Type keys, after discarding earlier output."""
        self._heard = ""
        os.write(self._main, keys.encode())

    def hang_up(self) -> None:
        os.close(self._main)

    def end(self) -> int:
        """Read to the end and return the exit code."""
        until("the end", lambda: not self.listen() or self.process.poll() is not None, 60, every=0)
        return self.process.wait(seconds(30))
