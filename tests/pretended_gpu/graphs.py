"""CUDA graphs as tapes: a replay repeats the operations with the memory and the Python numbers that they had."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes

from tests.pretended_gpu.memory import accessed, memory_of
from tests.pretended_gpu.streams import DEFAULT, Stream, current_stream
from tests.pretended_gpu.world import new_id, world

PoolId = tuple[int, int]


class Work(NamedTuple):
    """One operation of the device that has been done, as it can be done again."""

    name: str
    again: Callable[[], object]
    reads: list[Tensor]  # of the memory of the host that they lie in
    writes: list[Tensor]
    count: Callable[[], None]  # its kernels and bytes

    def note(self, stream: Stream) -> None:
        """Look at what it reads and writes, as the newest operation of the stream, and count it."""
        self.count()
        for tensors, writes in ((self.reads, False), (self.writes, True)):
            for tensor in tensors:
                accessed(tensor, stream, self.name, writes)


class Graph:
    """As torch.cuda.CUDAGraph. A capture does the operations, to know their shapes, and takes back what they wrote."""

    def __init__(self, keep_graph: bool = False) -> None:
        self.tape: list[Work] = []
        self.broken = False
        self._stream = DEFAULT
        self._pool: PoolId = (0, 0)
        self._generators: list[torch.Generator] = []
        self._states: list[Tensor] = []
        self._before: dict[int, tuple[Tensor, Tensor]] = {}  # memory that was written, and what was there

    def register_generator_state(self, generator: torch.Generator) -> None:
        self._generators.append(generator)

    def capture_begin(self, pool: PoolId | None = None, **_: Any) -> None:
        stream = current_stream()
        if stream is DEFAULT:
            raise RuntimeError("CUDA graphs must be captured on a non-default stream.")
        here = world()
        with here.lock:
            if here.captures:
                here.problem("a capture begins while another one is under way")
            self._stream, self._pool = stream, pool or (0, new_id())
            self._states = [generator.get_state() for generator in self._generators]
            stream.capture = self
            here.captures.append(self)

    def capture_end(self) -> None:
        here = world()
        with here.lock, _disable_current_modes():
            self._stream.capture = None
            here.captures.remove(self)
            for memory, before in self._before.values():
                memory.copy_(before)
            for generator, state in zip(self._generators, self._states, strict=True):
                generator.set_state(state)
            self._before.clear()
        if self.broken:
            raise RuntimeError("CUDA error: operation failed due to a previous error during capture")

    def replay(self) -> None:
        here, stream = world(), current_stream()
        with here.lock, _disable_current_modes():
            stream.asked()
            stream.advance()
            here.counts["launches"] += 1
            here.counts["replays"] += 1
            for work in self.tape:
                work.note(stream)
                work.again()

    def reset(self) -> None:
        self.tape.clear()

    def pool(self) -> PoolId:
        return self._pool

    def captures(self, work: Work) -> None:
        """Put an operation on the tape."""
        world().counts["captured"] += 1
        self.tape.append(work)

    def expects(self, name: str, random: bool, generator: torch.Generator | None, written: list[Tensor]) -> None:
        """An operation is about to be captured. Raises RuntimeError for random numbers of an unknown generator."""
        if random or generator is not None:
            state = None if generator is None else generator.get_state()
            if state is None or not any(torch.equal(each.get_state(), state) for each in self._generators):
                self.broken = True
                raise RuntimeError(f"{name}: philox_cuda_state for an unexpected CUDA generator used during capture")
        for tensor in written:
            self._keep(tensor)

    def _keep(self, tensor: Tensor) -> None:
        memory = memory_of(tensor)
        storage = tensor.untyped_storage()
        if memory is not None and memory.born_in is not self and storage._cdata not in self._before:
            whole = torch.empty(0, dtype=torch.uint8).set_(storage)
            self._before[storage._cdata] = whole, whole.clone()


def graph_pool_handle() -> PoolId:
    return (0, new_id())
