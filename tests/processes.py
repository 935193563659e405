"""Processes left behind by tests, including orphans: detection, report, and cleanup.

The processes of a test are the descendants of the pytest process. Linux gives an orphan to its nearest ancestor that is
a "subreaper", or to init: with `adopt_orphans` that is the pytest process, which therefore keeps track of all. Like
init, it must then reap them at once: Ray's processes check the process table for their raylet.
"""

import ctypes
import os
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

PR_SET_CHILD_SUBREAPER = 36
# One for each process that uses multiprocessing, and it ends with that process.
OF_PYTHON = "multiprocessing.resource_tracker"

interrupted = False  # the session is interrupted: leftover processes are not the fault of a test
_SELF = psutil.Process()
_of_the_session: set[psutil.Process] = set()


def adopt_orphans() -> None:
    """Make orphaned descendants children of this process from now on. Does nothing except on Linux."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> set[psutil.Process]:
    """Return the live children of this process; cheap if there are none."""
    found = set()
    for process in _children():
        with suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                found.add(process)
    return found


def _children() -> set[psutil.Process]:
    tasks = Path("/proc/self/task")
    if not tasks.is_dir():
        return set(_SELF.children())
    pids: set[int] = set()
    for task in tasks.iterdir():
        with suppress(FileNotFoundError):
            pids |= {int(pid) for pid in (task / "children").read_text().split()}
    found = set()
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            found.add(psutil.Process(pid))
    return found


def alive(pids: Iterable[int]) -> list[int]:
    """Return the processes that have not ended."""
    found = []
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            if psutil.Process(pid).status() not in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
                found.append(pid)
    return found


def keep_for_the_session(started: Iterable[psutil.Process]) -> None:
    """Let these outlive their test; they must be gone at the end of the session."""
    _of_the_session.update(started)


def end_new(before: set[psutil.Process], grace: float, session: bool = False) -> list[str]:
    """End new children and their descendants; return id and command line of each left after `grace` seconds."""
    allowed = before if session else before | _of_the_session
    end = time.monotonic() + grace
    while (left := _left(allowed)) and time.monotonic() < end:
        time.sleep(0.05)
    lines = [_described(process) for process in left]
    for _ in range(100):  # their orphans are adopted by this process now
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        if not (left := _left(allowed)):
            break
        time.sleep(0.05)
    return lines


def _left(allowed: set[psutil.Process]) -> list[psutil.Process]:
    left = []
    for child in children() - allowed:
        with suppress(psutil.NoSuchProcess):
            if OF_PYTHON not in " ".join(child.cmdline()):
                left += [child, *child.children(recursive=True)]
    return left


def _described(process: psutil.Process) -> str:
    with suppress(psutil.NoSuchProcess):
        return f"{process.pid} {' '.join(process.cmdline()) or process.name()}"
    return f"{process.pid} (ended)"


class Init(threading.Thread):
    """Reaper of adopted orphans, as init would be.

    An orphan is a child that was seen at a lower level before; direct children are left to their starter. `end_orphans`
    also kills live orphans: for a process that runs no tests itself but starts others. After `deadline` (monotonic
    clock) it kills all descendants, which often frees a test that hangs in a library.
    """

    EVERY = 0.2

    def __init__(self, end_orphans: bool) -> None:
        super().__init__(name="init for orphans", daemon=True)
        self.deadline = float("inf")
        self._end_orphans = end_orphans
        self._below: set[psutil.Process] = set()

    def run(self) -> None:
        while True:
            time.sleep(self.EVERY)
            with suppress(psutil.Error):
                self._reap_orphans()

    def _reap_orphans(self) -> None:
        if not _children():
            self._below.clear()
            return
        # In this order, so that a child born in between is not taken for an orphan and reaped here.
        everybody = set(_SELF.children(recursive=True))
        own = _children()
        if time.monotonic() > self.deadline:
            for process in everybody:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        self._below = (self._below & everybody) | (everybody - own)
        for orphan in own & self._below:
            if orphan.status() == psutil.STATUS_ZOMBIE:
                with suppress(ChildProcessError):
                    os.waitpid(orphan.pid, os.WNOHANG)
            elif self._end_orphans:
                orphan.kill()
