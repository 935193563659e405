"""`python -m play` at a terminal: it starts in the menu, ends well, and keeps what was played."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.limits import seconds, until
from tests.play.people import ROOT, command

_CODES = re.compile(r"\x1b(?:\[[0-9;?<>=]*[a-zA-Z]|\].*?(?:\x1b\\|\x07)|P.*?\x1b\\|[()][A-Z0-9]|[=>])", re.S)
GO_ON = "Saved: go on with python -m play save=saves/sette_mezzo-3.json"


class Terminal:
    """The command at a terminal of that size; it is the session's own, as one of ssh is."""

    def __init__(self, folder: Path, *arguments: str, size: tuple[int, int] = (80, 24), term: str = "xterm") -> None:
        self._main, side = pty.openpty()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-c", _OWN_TERMINAL, *arguments],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "TERM": term},
            stdin=side,
            stdout=side,
            stderr=side,
            start_new_session=True,
        )
        os.close(side)
        self._heard = ""

    @property
    def said(self) -> str:
        """What was written, without what only moves and colours it."""
        return _CODES.sub("", self._heard)

    def listen(self) -> bool:
        """Hear what is written; False once the other side has gone."""
        ready, _, _ = select.select([self._main], [], [], 0.05)
        if ready:
            try:
                self._heard += os.read(self._main, 65536).decode(errors="replace")
            except OSError:  # the end of a terminal on Linux
                return False
        return True

    def wait_for(self, text: str) -> None:
        until(f"{text!r} at the terminal", lambda: self.listen() and text in self.said, 60, every=0)

    def press(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def hang_up(self) -> None:
        os.close(self._main)

    def end(self) -> int:
        """Hear it to its end; the exit code."""
        until("the end", lambda: not self.listen() or self.process.poll() is not None, 30, every=0)
        return self.process.wait(seconds(30))


# The terminal becomes the one of the new session, so that its end is heard as SIGHUP.
_OWN_TERMINAL = """
import fcntl, runpy, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
sys.argv[0] = "play"
runpy.run_module("play", run_name="__main__")
"""


def test_it_starts_in_the_menu_and_ends(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path)
    terminal.wait_for("Corellian Spike")
    terminal.wait_for("as the opponents")
    terminal.press("q")
    assert terminal.end() == 0 and "Traceback" not in terminal.said
    assert list(tmp_path.iterdir()) == []


def test_ended_while_it_loads_it_ends_all_the_same(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "lang=it")
    terminal.wait_for("Tressette")
    terminal.press("\x11")
    assert terminal.end() == 0 and "Traceback" not in terminal.said


@pytest.mark.parametrize("how", ["ctrl+q", "SIGTERM", "SIGINT"])
def test_a_table_is_saved_and_the_last_line_says_how_to_go_on(how: str, tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "game=sette_mezzo", "seed=3")
    terminal.wait_for("Your turn")
    if how == "ctrl+q":
        terminal.press("\x11")
    else:
        terminal.process.send_signal(getattr(signal, how))
    assert terminal.end() == 0 and "Traceback" not in terminal.said
    assert terminal.said.rstrip().endswith(GO_ON)
    assert [path.name for path in (tmp_path / "saves").iterdir()] == ["sette_mezzo-3.json"]


def test_a_lost_connection_keeps_the_table(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "game=sette_mezzo", "seed=3")
    terminal.wait_for("Your turn")
    terminal.hang_up()
    terminal.process.wait(seconds(30))
    assert [path.name for path in (tmp_path / "saves").iterdir()] == ["sette_mezzo-3.json"]


def test_a_terminal_of_lines_alone_gets_lines(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, "game=sette_mezzo", "seed=3", term="dumb")
    terminal.wait_for("Type help for all words.")
    terminal.wait_for("Your turn, seat 0:")
    terminal.press("quit\n")
    assert terminal.end() == 0 and "\x1b" not in terminal.said and GO_ON in terminal.said


def test_a_pipe_gets_lines_and_the_application_says_that_it_needs_a_terminal(tmp_path: Path) -> None:
    assert command(tmp_path, "quit\n", "game=sette_mezzo", "seed=3").stdout.startswith("busso: Sette e mezzo, seed 3.")
    refused = command(tmp_path, "", "ui=app")
    assert refused.returncode == 2 and refused.stdout == ""
    assert refused.stderr == "error: ui: app needs a terminal for input and output; use ui=plain for pipes\n"
