"""Many updates as one CUDA graph: the CPU launches all their operations at once.

https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Protocol

import torch

log = logging.getLogger("train")

SIZES = (16, 1)  # updates in a graph, falling; the last takes what is left of the others
WARM_UP = 3  # updates before a capture, as PyTorch asks for: libraries allocate what they need

# Of the process. A capture begins with a wait for the device, which CUDA refuses while another thread captures. Warming
# up waits too: the streams of more than 32 recorders are not apart.
_one_at_a_time = threading.Lock()


class Graph(Protocol):
    """Operations of a device that are given to it all at once."""

    def replay(self) -> None:
        """Have the device do all of them again."""


class GraphRecorder(Protocol):
    """What makes graphs: `CudaRecorder`, or a stand-in in tests."""

    def warm_up(self, step: Callable[[], None], times: int) -> None:
        """Have the device do a step `count` times, in a way that prepares for a capture."""

    def capture(self, step: Callable[[], None], times: int) -> Graph:
        """A graph of `count` steps, none of which the device does now. Raises RuntimeError where that fails."""


class GraphedSteps:
    """A step that is run many times: captured once, then replayed.

    Whatever a step reads or writes must stay where it is from one step to the next. `depends_on` gives what else its
    operations depend on: with another answer they are captured anew. Where a capture fails, every step is run by
    itself; `keep` is called before, and what it returns then, to undo what the capture left half done.
    """

    def __init__(
        self,
        step: Callable[[], None],
        depends_on: Callable[[], object],
        keep: Callable[[], Callable[[], None]],
        recorder: GraphRecorder,
        what: str = "updates",
        sizes: Sequence[int] = SIZES,
    ) -> None:
        self._step, self._what, self._sizes = step, what, sizes
        self._depends_on = depends_on
        self._keep = keep
        self._recorder = recorder
        self._graphs: dict[int, Graph] = {}
        self._recorded_for: object = None
        self._warm = 0  # steps since there was no graph
        self._failed = False

    @property
    def failed(self) -> bool:
        """Whether a capture has failed, and each step is run by itself."""
        return self._failed

    def forget(self) -> None:
        """The step's tensors are others than before.

        All graphs are dropped together, before a new one is captured on their stream: with each, PyTorch drops the
        workspaces of cuBLAS of that stream, also those that the others use (pytorch#193402).
        """
        self._graphs.clear()
        self._warm = 0

    def run(self, count: int) -> None:
        """Have the device do `count` steps, in the order of calls."""
        if self._failed:
            return self._run_each(count)
        now = self._depends_on()
        if now != self._recorded_for:
            self._recorded_for = now
            self.forget()
        if not self._graphs:
            count -= self._warm_up(count)
            if count and not self._capture():
                return self._run_each(count)
        if not count:
            return None
        for size in self._sizes:
            for _ in range(count // size):
                self._graphs[size].replay()
            count %= size
        return None

    def _warm_up(self, count: int) -> int:
        """Run as many of the steps as are wanting; returns how many these were."""
        times = min(count, WARM_UP - self._warm)
        if times:
            self._recorder.warm_up(self._step, times)
            self._warm += times
        return times

    def _run_each(self, count: int) -> None:
        for _ in range(count):
            self._step()

    def _capture(self) -> bool:
        undo = self._keep()
        try:
            self._graphs = {size: self._recorder.capture(self._step, size) for size in self._sizes}
        except RuntimeError as error:
            self._failed = True
            undo()
            log.warning(
                "%s could not be captured in a CUDA graph (%s); each is run by itself; learner.cuda_graphs=false "
                "does so from the start",
                self._what,
                why_broken(error),
            )
            self._graphs = {}
        return not self._failed


def stream_apart(device: torch.device) -> torch.cuda.Stream:
    """A stream that is no other thread's, to capture on.

    PyTorch has 32 streams of each priority and hands them out in turn: what another thread asks of the same stream
    during a capture would go into the graph. Graphs that are not dropped together need streams of their own.
    """
    return torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]


def why_broken(error: RuntimeError) -> str:
    """In one line what broke a capture, and not that its end found it broken."""
    return str(error.__context__ or error).strip().partition("\n")[0]


@contextmanager
def capturing(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, errors: str) -> Iterator[None]:
    """`torch.cuda.graph` in a memory pool of its own; also when it fails, thread and allocator are as before.

    In versions without pytorch#180395 a capture that fails does not end in the allocator. From then on it keeps all
    memory that more than one stream has used, so each rollout would leak. What the failed capture itself allocated is
    given back by `reset`, from pytorch#190348 on: to release the pool once more here would end the process there.
    """
    current = torch.cuda.current_stream(stream.device)
    pool = torch.cuda.graph_pool_handle()
    try:
        with torch.cuda.graph(graph, pool=pool, stream=stream, capture_error_mode=errors):
            yield
    except BaseException:
        with suppress(RuntimeError):  # it has ended
            torch._C._cuda_endAllocateToPool(stream.device.index, pool)
        graph.reset()
        raise
    finally:
        torch.cuda.set_stream(current)


class CudaRecorder:
    """Captures on a stream of its own, with the numbers that `generator` draws, if it has one."""

    def __init__(self, device: torch.device, generator: Callable[[], torch.Generator] | None = None) -> None:
        self._device = device
        self._generator = generator
        self._stream = stream_apart(device)

    def warm_up(self, step: Callable[[], None], times: int) -> None:
        """On the stream that captures, before and after which the device does the other stream's work."""
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with _one_at_a_time, torch.cuda.stream(self._stream):
            for _ in range(times):
                step()
        current.wait_stream(self._stream)

    def capture(self, step: Callable[[], None], times: int) -> torch.cuda.CUDAGraph:
        """See `GraphRecorder`. Other threads may use the device meanwhile. Memory is the graph's own."""
        graph = torch.cuda.CUDAGraph()
        # Later versions of PyTorch find the generators by themselves, and are to drop this.
        register = getattr(graph, "register_generator_state", None)
        if register and self._generator:
            register(self._generator())
        with _one_at_a_time, capturing(graph, self._stream, "thread_local"):
            for _ in range(times):
                step()
        return graph
