"""The exact solver of Tressette in a process of its own, which compiles it while games are played for a report."""

from __future__ import annotations

import os
import subprocess
import sys
from types import TracebackType
from typing import IO

import numpy as np
from numpy.typing import NDArray

from cards.game import States
from train.run.metrics import resources
from tressette.cards import CARDS
from tressette.rules import STATE
from tressette.solver.double_dummy import new_table
from tressette.solver.endings import solved_values

_LENGTH = 8  # bytes that say how long what follows is
_SERVE = "from evaluate.report.sections.solver import serve; serve()"


class Solver:
    """Solves open hands. Use as a context; on a single CPU, or if the other process fails, it is this one that solves.

    No `multiprocessing`: that would run the script of whoever asks for a report once more.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Solver:
        if resources.cpus() > 1:
            paths = {"PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
            command = [sys.executable, "-c", _SERVE]
            # A session of its own: Ctrl-C is for the command, which then ends this process.
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ | paths, start_new_session=True
            )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        process, self._process = self._process, None
        if process is not None:
            if error is not None:
                process.kill()
            process.communicate()  # it ends when nothing more can come

    def values(self, states: States) -> NDArray[np.float64]:
        """The points of the team to move after each card with best play of all, `[states, cards]`; -1 if not legal."""
        found = self._asked(states)
        return (_solve(states) if found is None else found).astype(np.float64)

    def _asked(self, states: States) -> NDArray[np.float32] | None:
        """What the other process says; None where there is none, or no longer."""
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return None
        try:
            _send(process.stdin, states.tobytes())
            answer = _receive(process.stdout)
        except (OSError, ValueError):
            return None
        return None if answer is None else np.frombuffer(answer, np.float32).reshape(states.size, CARDS)


def serve() -> None:
    """Compile, and then solve what comes by standard input, states after states, until nothing more comes."""
    _solve(np.zeros(0, STATE))
    while (states := _receive(sys.stdin.buffer)) is not None:
        _send(sys.stdout.buffer, _solve(np.frombuffer(states, STATE).copy()).tobytes())


def _send(to: IO[bytes], content: bytes) -> None:
    to.write(len(content).to_bytes(_LENGTH, "big") + content)
    to.flush()


def _receive(source: IO[bytes]) -> bytes | None:
    """What was sent; None where the other side has ended."""
    head = source.read(_LENGTH)
    length = int.from_bytes(head, "big")
    content = source.read(length)
    return content if len(head) == _LENGTH and len(content) == length else None


def _solve(states: States) -> NDArray[np.float32]:
    return solved_values(states, np.arange(states.size), new_table())
