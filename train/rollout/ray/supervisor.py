"""Supervisor process between learner and driver, which cleans up processes and files. It imports little.

`python -m busso.train.rollout.ray.supervisor FOLDER LIFELINE CHANNEL SLOT...` forks the driver, which uses Ray; all
arguments but the folder are file descriptors. When the driver has ended for any reason, or the other end of LIFELINE is
closed, it kills all its descendants, including adopted orphans, and removes the folder. FOLDER is empty with an outside
RAY_ADDRESS, whose own processes are not descendants.
"""

import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

from busso.base.system import adopt_orphans, end_with_parent, parents
from busso.train.rollout.ray import private
from busso.train.run.signals import ignore_signals

GRACE_SECONDS = 5.0  # for the driver to disconnect from Ray
KILL_SECONDS = 10.0


def main(folder: Path | None, lifeline: int, channel: int, slots: list[int]) -> int:
    """Return the driver's exit code."""
    ignore_signals()
    adopt_orphans()
    if folder:
        private.claim(folder)
    supervisor = os.getpid()
    ended, lives = os.pipe()  # pipe whose write end only the driver holds: older kernels have no pidfd
    driver = os.fork()
    if driver == 0:
        for file in (lifeline, ended):
            os.close(file)
        if not end_with_parent(supervisor, signal.SIGKILL):
            return 1
        from busso.train.rollout.ray.driver import serve

        serve(channel, slots)
    for file in (lives, channel, *slots):
        os.close(file)  # otherwise the learner could not detect the driver's end
    code = _keep(lifeline, ended, driver)
    if folder:
        if code not in (0, private.EXIT_LOST):
            private.print_ray_logs()
        private.remove(folder)
    return code


def _keep(lifeline: int, ended: int, driver: int) -> int:
    wait = select.poll()
    for file in (lifeline, ended):
        wait.register(file, select.POLLIN)
    if all(file != ended for file, _ in wait.poll()):  # the learner is gone or has closed the lifeline
        wait.unregister(lifeline)
        wait.poll(int(1000 * GRACE_SECONDS))
    return end_descendants(driver)


def end_descendants(driver: int) -> int:
    """Kill all descendants of this process; return the driver's exit code."""
    code, end = 1, time.monotonic() + KILL_SECONDS
    while time.monotonic() < end:
        with suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                if found[0] == driver:
                    code = os.waitstatus_to_exitcode(found[1])
        left = descendants(os.getpid())
        if not left:
            break
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return code if code >= 0 else 128 - code


def descendants(ancestor: int) -> list[int]:
    """Return the descendants of a process, including zombies."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found, unseen = [], [ancestor]
    while unseen:
        below = children.get(unseen.pop(), [])
        found += below
        unseen += below
    return found


if __name__ == "__main__":
    _lifeline, _channel, *_slots = (int(argument) for argument in sys.argv[2:])
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1] else None, _lifeline, _channel, _slots))
