"""Which stream used which bytes: races, memory given back too early, pinned memory touched too early."""

from __future__ import annotations

import weakref
from typing import NamedTuple

import torch
from torch import Tensor

from tests.pretended_gpu.streams import Stream, current_stream
from tests.pretended_gpu.world import host_clock, join, world

_REMEMBERED = 16  # accesses of one storage; more are forgotten, the oldest first


class Access(NamedTuple):
    """What an operation of a stream did to some bytes of a storage."""

    stream: str
    tick: int
    start: int
    end: int
    operation: str

    def overlaps(self, other: Access) -> bool:
        return self.start < other.end and other.start < self.end

    def covers(self, other: Access) -> bool:
        return self.start <= other.start and other.end <= self.end


class Memory:
    """What is known of one storage of the device, or of pinned memory of the host."""

    def __init__(self, storage: torch.UntypedStorage, owner: Stream, pinned: bool) -> None:
        self.owner = owner
        self.pinned = pinned
        self.born_in = owner.capture  # a graph keeps its memory
        self.recorded: set[str] = set()  # by record_stream
        self._writes: list[Access] = []
        self._reads: list[Access] = []
        self._last: dict[str, Access] = {}  # of each stream
        self._bytes = 0 if pinned else storage.nbytes()
        world().bytes_alive += self._bytes
        world().bytes_at_peak = max(world().bytes_at_peak, world().bytes_alive)
        key = storage._cdata
        self._kept = weakref.ref(storage, lambda _: self._freed(key))

    def access(self, at: Access, known: dict[str, int], writes: bool) -> None:
        """A stream reads or writes; it comes after what `known` says."""
        for kind, earlier in (("writes", self._writes), ("reads", self._reads if writes else [])):
            for each in earlier:
                if each.stream != at.stream and each.overlaps(at) and known.get(each.stream, 0) < each.tick:
                    does = "writes" if writes else "reads"
                    world().problem(f"race: {at.operation} {does} what {each.operation} {kind} on another stream")
        if writes:
            self._writes = [each for each in self._writes if not at.covers(each)]
            self._writes = [*self._writes[-_REMEMBERED:], at]
            self._reads = [each for each in self._reads if not at.covers(each)]
        else:
            self._reads = [each for each in self._reads if each.stream != at.stream or not at.covers(each)]
            self._reads = [*self._reads[-_REMEMBERED:], at]
        self._last[at.stream] = at

    def host_touches(self) -> None:
        """A host thread reads or writes it, or hands it out to be read or written."""
        for each in self._under_way(host_clock()) if self.pinned else []:
            world().problem(f"the host touches pinned memory while {each.operation} may be under way")

    def _freed(self, key: int) -> None:
        """The allocator gives it to the next request on the owner's stream. It keeps pinned memory by events."""
        here = world()
        with here.lock:
            if here.memories.get(key) is self:
                del here.memories[key]
                here.bytes_alive -= self._bytes
            if self.pinned or self.born_in is not None:
                return
            known = dict(self.owner.clock)
            join(known, host_clock())
            for each in self._under_way(known):
                if each.stream != self.owner.name and each.stream not in self.recorded:
                    here.problem(f"memory is given back while another stream may still use it ({each.operation})")

    def _under_way(self, known: dict[str, int]) -> list[Access]:
        return [each for each in self._last.values() if known.get(each.stream, 0) < each.tick]


def memory_of(tensor: Tensor) -> Memory | None:
    """What is known of the storage of a tensor of the host's; None for usual memory of the host."""
    return world().memories.get(tensor.untyped_storage()._cdata)


def allocated(tensor: Tensor, pinned: bool = False) -> None:
    """The tensor has new memory: of the device, by the current stream, or pinned memory."""
    storage = tensor.untyped_storage()
    if storage._cdata not in world().memories:
        world().memories[storage._cdata] = Memory(storage, current_stream(), pinned)


def is_pinned(tensor: Tensor) -> bool:
    memory = memory_of(tensor)
    return memory is not None and memory.pinned


def accessed(tensor: Tensor, stream: Stream, operation: str, writes: bool) -> None:
    """The newest operation of a stream reads or writes a tensor."""
    memory = memory_of(tensor)
    if memory is not None and tensor.numel():
        start = tensor.storage_offset() * tensor.element_size()
        memory.access(Access(stream.name, stream.tick, start, start + extent(tensor), operation), stream.clock, writes)


def extent(tensor: Tensor) -> int:
    """Bytes from its first number to its last."""
    if tensor.is_contiguous():
        return tensor.nbytes
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size()
