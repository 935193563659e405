"""Whoever starts processes ends them. What a test leaves behind is found, named and ended, orphans too.

The processes of a test are the children of the pytest process and what these start. Linux gives a process whose parent
has ended to its nearest ancestor that is a "subreaper", and to init if there is none: with `adopt_orphans` that is the
pytest process, which so loses sight of nobody. It then has to do what init does, wait for those that it was given, and
at once: Ray's processes ask the process table whether their raylet is still there.
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
# One for each process that uses multiprocessing; it ends with that process.
OF_PYTHON = "multiprocessing.resource_tracker"

interrupted = False  # whether the session is; then processes left behind are no fault of a test
_SELF = psutil.Process()
_of_the_session: set[psutil.Process] = set()


def adopt_orphans() -> None:
    """From now on orphans among this process's descendants become its children. Elsewhere than on Linux: nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children() -> set[psutil.Process]:
    """The processes whose parent is this one, without those that have ended; cheap where there is none."""
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
    """These may outlive the test that started them; at the end of the session they must be gone."""
    _of_the_session.update(started)


def end_new(before: set[psutil.Process], grace: float, session: bool = False) -> list[str]:
    """End the children that were not there `before`, and all that they started.

    Returns a line for each process that was still there after `grace` seconds, with its id and command line.
    """
    allowed = before if session else before | _of_the_session
    end = time.monotonic() + grace
    while (left := _left(allowed)) and time.monotonic() < end:
        time.sleep(0.05)
    lines = [_described(process) for process in left]
    for _ in range(100):  # what was below them comes to this process now
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
    """Does for adopted orphans what init would: waits for those that have ended.

    An orphan is a child that was seen further down before; a child of this process's own is left to who started it.
    With `end_orphans` the living ones are ended too: for a process that starts no tests, only others that do.
    Past `deadline` (of the monotonic clock) it ends everybody: a test that hangs in a library then often comes back.
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
        # In this order: a child that is born in between must not pass for an orphan, whom this thread waits for.
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
