"""Streams and events by vector clocks: nothing runs at the same time, but what could have is known."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

import torch

from tests.pretended_gpu.world import DEVICE, Clock, host_clock, join, new_id, world

if TYPE_CHECKING:
    from tests.pretended_gpu.graphs import Graph


class Stream:
    """As torch.cuda.Stream."""

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.name = f"stream {new_id()}"
        self.cuda_stream = new_id()  # the handle, for other libraries
        self.device: torch.device = DEVICE
        self.priority = priority
        self.clock: Clock = {self.name: 0}
        self.capture: Graph | None = None
        _streams.add(self)

    @property
    def tick(self) -> int:
        """How many operations it was given."""
        return self.clock[self.name]

    def advance(self) -> None:
        """It is given one operation more."""
        self.clock[self.name] += 1

    def asked(self) -> None:
        """A host thread asks it for something, after all that the thread has waited for."""
        join(self.clock, host_clock())

    def host_waits(self, what: str) -> None:
        """This thread waits for all that the stream was given. Raises RuntimeError during a capture."""
        if self.capture is not None:
            self.capture.broken = True
            raise RuntimeError(f"CUDA error: operation not permitted when stream is capturing ({what})")
        join(host_clock(), self.clock)

    def wait_event(self, event: Event) -> None:
        event.wait(self)

    def wait_stream(self, other: Stream) -> None:
        self.wait_event(other.record_event())

    def record_event(self, event: Event | None = None) -> Event:
        event = event or Event()
        event.record(self)
        return event

    def synchronize(self) -> None:
        with world().lock:
            world().counts["stream waits"] += 1
            self.host_waits("synchronize")

    def __repr__(self) -> str:
        return self.name


class Event:
    """As torch.cuda.Event."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self._clock: Clock = {}

    def record(self, stream: Stream | None = None) -> None:
        stream = stream or current_stream()
        with world().lock:
            stream.asked()
            self._clock = dict(stream.clock)

    def wait(self, stream: Stream | None = None) -> None:
        with world().lock:
            join((stream or current_stream()).clock, self._clock)

    def synchronize(self) -> None:
        with world().lock:
            world().counts["event waits"] += 1
            join(host_clock(), self._clock)


_streams: weakref.WeakSet[Stream] = weakref.WeakSet()
DEFAULT = Stream()


class _Current(threading.local):
    stream = DEFAULT


_current = _Current()


def current_stream(device: Any = None) -> Stream:
    return _current.stream


def default_stream(device: Any = None) -> Stream:
    return DEFAULT


def set_stream(stream: Stream) -> None:
    _current.stream = stream


def synchronize(device: Any = None) -> None:
    """As torch.cuda.synchronize. CUDA refuses it while any stream captures, whichever thread asks."""
    here = world()
    with here.lock:
        if here.captures:
            here.problem("the device is waited for while a capture is under way")
        here.counts["device waits"] += 1
        for stream in list(_streams):
            join(host_clock(), stream.clock)
