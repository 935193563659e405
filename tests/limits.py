"""Time limits of tests: for an idle machine, and longer under load."""

import os
import time
from collections.abc import Callable
from pathlib import Path

MAX_SLOWNESS = 4.0


def slowness() -> float:
    """Return the runnable processes, recent or present, per CPU of this process: 1 to `MAX_SLOWNESS`."""
    wanting = [os.getloadavg()[0]]
    if Path("/proc/loadavg").exists():
        wanting.append(float(Path("/proc/loadavg").read_text().split()[3].split("/")[0]))
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(MAX_SLOWNESS, max(1.0, *(count / cpus for count in wanting)))


def seconds(base: float) -> float:
    """Return the limit for a task that takes at most `base` seconds on an idle machine."""
    return base * slowness()


def until(what: str, seen: Callable[[], object], base: float = 300.0, every: float = 0.1) -> float:
    """Wait until `seen` and return the seconds taken. The limit follows the load during the wait."""
    start = time.monotonic()
    while not seen():
        waited = time.monotonic() - start
        if waited > seconds(base):
            raise AssertionError(f"not within {waited:.0f} s: {what}")
        time.sleep(every)
    return time.monotonic() - start
