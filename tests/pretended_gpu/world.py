"""What a pretended GPU counts and finds, and the clocks by which it knows what comes before what."""

from __future__ import annotations

import itertools
import threading
import traceback
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from tests.pretended_gpu.graphs import Graph
    from tests.pretended_gpu.memory import Memory

DEVICE, CPU = torch.device("cuda", 0), torch.device("cpu")
_HERE = Path(__file__).parent
_ROOT = _HERE.parents[1]
_ids = itertools.count(1)

Clock = dict[str, int]  # of each stream and host thread: how far it has come at least


def new_id() -> int:
    """A number that nothing else has."""
    return next(_ids)


def join(clock: Clock, other: Clock) -> None:
    """From now on what `other` knows to be done is known to `clock` too."""
    for name, tick in other.items():
        if clock.get(name, 0) < tick:
            clock[name] = tick


class World:
    """One pretended GPU, from its beginning to its end.

    `problems`: one line for each fault and place. `operations`: by name, what the device did, also in replays.
    `counts`:

    * `kernels`, `kernel bytes`: operations of the device but copies from and to the host, and what they read and write
    * `launches`: kernels, copies and graphs that the host gave to the device
    * `uploads`, `uploaded bytes`, `downloads`, `downloaded bytes`: copies from the host, and to it
    * `waits`: the host waited for the device to read something back, or for a copy
    * `event waits`, `stream waits`, `device waits`: calls of `synchronize`
    * `captured`, `replays`: operations put into graphs, and graphs replayed
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.problems: list[str] = []
        self.counts: Counter[str] = Counter()
        self.operations: Counter[str] = Counter()
        self.memories: dict[int, Memory] = {}  # by the address of the storage, in Python's sense
        self.captures: list[Graph] = []  # under way
        self.bytes_alive = self.bytes_at_peak = 0  # of all tensors of the device, now and at most

    def problem(self, text: str) -> None:
        """Note a fault at the line of the code that is on the stack; the same fault at the same place is noted once."""
        frames = [frame for frame in traceback.extract_stack() if self._is_ours(Path(frame.filename))]
        places = [f"{Path(frame.filename).relative_to(_ROOT)}:{frame.lineno}" for frame in reversed(frames[-4:])]
        line = f"{text} at {' < '.join(places)}"
        if line not in self.problems:
            self.problems.append(line)

    def clear_counts(self) -> None:
        """Count from 0 again."""
        self.counts.clear()
        self.operations.clear()

    @staticmethod
    def _is_ours(path: Path) -> bool:
        return path.is_relative_to(_ROOT) and ".venv" not in path.parts and path.parent != _HERE


class _Current:
    world = World()


def world() -> World:
    """The one there is, or the last there was."""
    return _Current.world


def begin_world() -> World:
    """A new one."""
    _Current.world = World()
    return _Current.world


class _Host(threading.local):
    """The clock of each host thread."""

    def __init__(self) -> None:
        self.clock: Clock = {f"host {new_id()}": 1}


_host = _Host()


def host_clock() -> Clock:
    """What this thread knows to be done. A thread has no ticks of its own: it is known by what it waited for."""
    return _host.clock
