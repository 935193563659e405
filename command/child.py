"""`python -m busso.command.child PARENT MODULE ARGUMENT...`: a module as a command that does not outlive its parent.

PARENT is the process that starts it. However that ends, by kill -9 too, the command gets SIGTERM then, on which a
training writes a checkpoint. It imports next to nothing before the module.
"""

from __future__ import annotations

import ctypes
import os
import runpy
import signal
import sys
from collections.abc import Sequence

_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)


def child_command(module: str, arguments: Sequence[str]) -> list[str]:
    """The command line that runs `python -m module` as a child of this process.

    The thread that starts it has to wait for it: for Linux that thread is the parent.
    """
    return [sys.executable, "-m", "busso.command.child", str(os.getpid()), module, *arguments]


def end_with_parent(parent: int, number: int) -> bool:
    """Have this process sent the signal when its parent ends; False if `parent` has ended already.

    Linux alone can do that; elsewhere nothing is sent.
    """
    _prctl(_SET_PARENT_DEATH_SIGNAL, number)
    return os.getppid() == parent


def adopt_orphans() -> None:
    """Make this process the parent of its descendants whose parents end."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux" and ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    if not end_with_parent(int(sys.argv[1]), signal.SIGTERM):
        sys.exit(128 + signal.SIGTERM)
    sys.argv = sys.argv[2:]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
