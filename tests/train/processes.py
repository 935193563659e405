"""Trainers and clusters as processes, for tests that end them; nothing is ever left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from busso.train.rollout.ray.supervisor import descendants
from tests.limits import until
from tests.processes import alive
from tests.train.runs import small

LIMIT = 300.0  # seconds for anything, even on a loaded machine


def named(ancestor: int, name: str) -> list[int]:
    """Return the descendants of a process with `name` in their command line; ended ones have none."""
    found = []
    for pid in descendants(ancestor):
        with suppress(OSError):
            if name in (Path("/proc") / str(pid) / "cmdline").read_text():
                found.append(pid)
    return found


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Kill the process at the end if it still runs, with all its descendants."""
    try:
        yield process
    finally:
        below = descendants(process.pid)
        process.kill()
        process.communicate()
        with suppress(AssertionError):
            until("the rest has ended", lambda: not alive(below), 20)
        for pid in alive(below):
            os.kill(pid, signal.SIGKILL)


@contextmanager
def trainer(
    runs: Path, *overrides: str, seen: str = "first update", **environment: str
) -> Iterator[subprocess.Popen[str]]:
    """Start an endless `busso train` and wait for its log or output; output goes to the file `stderr` of the folder."""
    command = [sys.executable, "-m", "busso.train", *small(runs, "episodes=1000000", *overrides)]
    errors, log = runs / "stderr", runs / "tressette" / "small" / "train.log"
    before = log.stat().st_size if log.exists() else 0
    runs.mkdir(exist_ok=True)
    with errors.open("w") as file:
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=file, text=True, env={**os.environ, **environment}
        )
    with ended(process):

        def said() -> bool:
            return seen in errors.read_text() or (log.exists() and seen in log.read_text()[before:])

        until(seen, lambda: process.poll() is not None or said())
        assert process.poll() is None, errors.read_text()
        yield process


# Here the raylet is a child of this process; with `ray start` it is init's. Either parent must reap it, because Ray's
# workers take an unreaped process to be alive.
_HEAD = """
import sys, threading
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 2, "include_dashboard": False})
print(cluster.address, flush=True)
raylet = cluster.head_node.all_processes["raylet"][0].process
threading.Thread(target=raylet.wait, daemon=True).start()
sys.stdin.read()
"""


@contextmanager
def outside_cluster(**environment: str) -> Iterator[tuple[str, int]]:
    """Yield the address of a cluster as started by others, and the process whose descendants form it."""
    process = subprocess.Popen(
        [sys.executable, "-c", _HEAD],
        env=os.environ | {"RAY_worker_niceness": "0"} | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    with ended(process):
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process.pid
