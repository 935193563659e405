"""What host threads know of one another: by starting and joining, and by conditions and queues."""

from __future__ import annotations

import queue
import threading
from functools import _lru_cache_wrapper
from typing import Any

from tests.pretended_gpu.operations import Mode
from tests.pretended_gpu.world import Clock, host_clock, join, world

_start, _run, _join = threading.Thread.start, threading.Thread.run, threading.Thread.join
_Condition, _SimpleQueue = threading.Condition, queue.SimpleQueue


def _learn(clock: Clock) -> None:
    with world().lock:
        join(host_clock(), clock)


def _tell(clock: Clock) -> None:
    with world().lock:
        join(clock, host_clock())


class Condition(_Condition):
    """threading.Condition, by which futures and threading.Event wait as well."""

    def __init__(self, lock: Any = None) -> None:
        super().__init__(lock)
        self._clock: Clock = {}

    def __enter__(self) -> bool:
        entered = super().__enter__()
        _learn(self._clock)
        return entered

    def __exit__(self, *args: Any) -> None:
        _tell(self._clock)
        super().__exit__(*args)

    def wait(self, timeout: float | None = None) -> bool:
        _tell(self._clock)
        notified = super().wait(timeout)
        _learn(self._clock)
        return notified


class SimpleQueue:
    """queue.SimpleQueue: who gets an item knows what the one knew that put it there."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[tuple[Clock, Any]] = _SimpleQueue()

    def put(self, item: Any, *args: Any, **kwargs: Any) -> None:
        clock: Clock = {}
        _tell(clock)
        self._queue.put((clock, item))

    def get(self, *args: Any, **kwargs: Any) -> Any:
        clock, item = self._queue.get(*args, **kwargs)
        _learn(clock)
        return item

    def get_nowait(self) -> Any:
        return self.get(block=False)

    def qsize(self) -> int:
        return self._queue.qsize()

    __class_getitem__ = classmethod(lambda cls, _: cls)


class Cached:
    """A function under functools.cache: who is given a result knows what was known when it was made."""

    def __init__(self, cached: _lru_cache_wrapper[Any]) -> None:
        self.__wrapped__ = cached.__wrapped__
        self._lock = threading.Lock()
        self._results: dict[Any, tuple[Clock, Any]] = {}

    def __call__(self, *args: Any) -> Any:
        with self._lock:
            if args not in self._results:
                result, clock = self.__wrapped__(*args), {}
                _tell(clock)
                self._results[args] = clock, result
        clock, result = self._results[args]
        _learn(clock)
        return result

    def cache_clear(self) -> None:
        self._results.clear()


def start(self: threading.Thread) -> None:
    """threading.Thread.start."""
    self._clock: Clock = {}  # type: ignore[attr-defined]
    _tell(self._clock)  # type: ignore[attr-defined]
    _start(self)


def run(self: threading.Thread) -> None:
    """threading.Thread.run."""
    clock: Clock = self.__dict__.get("_clock", {})
    _learn(clock)
    with Mode():
        _run(self)
    _tell(clock)


def join_thread(self: threading.Thread, timeout: float | None = None) -> None:
    """threading.Thread.join."""
    _join(self, timeout)
    if not self.is_alive():
        _learn(self.__dict__.get("_clock", {}))
