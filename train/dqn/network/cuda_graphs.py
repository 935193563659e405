"""Many updates as one CUDA graph: a GPU is given all their operations at once, not each by itself.

https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import torch

log = logging.getLogger("train")

SIZES = (16, 1)  # updates in a graph, falling; the last takes what is left of the others
WARM_UP = 3  # updates before a capture, as PyTorch asks for: libraries allocate what they need


class Graph(Protocol):
    """Operations of a device that are given to it all at once."""

    def replay(self) -> None:
        """Have the device do all of them again."""


class GraphRecorder(Protocol):
    """What makes graphs: `CudaRecorder`, or a stand-in in tests."""

    def warm_up(self, step: Callable[[], None], times: int) -> None:
        """Have the device do a step so many times, in a way that prepares for a capture."""

    def capture(self, step: Callable[[], None], times: int) -> Graph:
        """A graph of so many steps, none of which the device does now. Raises RuntimeError where that fails."""


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
    ) -> None:
        self._step = step
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
        """The step's tensors are others than before."""
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
        for size in SIZES:
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
            self._graphs = {size: self._recorder.capture(self._step, size) for size in SIZES}
        except RuntimeError as error:
            self._failed = True
            undo()
            log.warning(
                "updates could not be captured in a CUDA graph (%s); each is run by itself; learner.cuda_graphs=false "
                "does so from the start",
                why_broken(error),
            )
            self._graphs = {}
        return not self._failed


def stream_apart(device: torch.device) -> torch.cuda.Stream:
    """A stream that is no other thread's, to capture on.

    PyTorch has 32 streams of each priority and hands them out in turn: what another thread asks of the same stream
    during a capture would go into the graph.
    """
    return torch.cuda.Stream(device, priority=-1)  # type: ignore[no-untyped-call]


def why_broken(error: RuntimeError) -> str:
    """In one line what broke a capture, and not that its end found it broken."""
    return str(error.__context__ or error).strip().partition("\n")[0]


@contextmanager
def capturing(graph: torch.cuda.CUDAGraph, stream: torch.cuda.Stream, errors: str) -> Iterator[None]:
    """`torch.cuda.graph`, after which this thread is on the stream where it was, also when the capture fails."""
    current = torch.cuda.current_stream(stream.device)
    try:
        with torch.cuda.graph(graph, stream=stream, capture_error_mode=errors):
            yield
    finally:
        torch.cuda.set_stream(current)


class CudaRecorder:
    """Captures on a stream of its own, with the numbers that `generator` draws."""

    def __init__(self, device: torch.device, generator: Callable[[], torch.Generator]) -> None:
        self._device = device
        self._generator = generator
        self._stream = stream_apart(device)

    def warm_up(self, step: Callable[[], None], times: int) -> None:
        """On the stream that captures, before and after which the device does the other stream's work."""
        current = torch.cuda.current_stream(self._device)
        self._stream.wait_stream(current)
        with torch.cuda.stream(self._stream):
            for _ in range(times):
                step()
        current.wait_stream(self._stream)

    def capture(self, step: Callable[[], None], times: int) -> torch.cuda.CUDAGraph:
        """See `GraphRecorder`. Other threads may use the device meanwhile. Memory is the graph's own."""
        graph = torch.cuda.CUDAGraph()
        # Later versions of PyTorch find the generators by themselves, and are to drop this.
        if register := getattr(graph, "register_generator_state", None):
            register(self._generator())
        with capturing(graph, self._stream, "thread_local"):
            for _ in range(times):
                step()
        return graph
