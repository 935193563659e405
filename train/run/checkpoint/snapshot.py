"""Copies of the small parts of a state, made without stopping the threads that change them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from typing import Any

import torch
from torch import Tensor


class Snapshot:
    """A nested state as it is now.

    Tensors on the CPU are copied at once. Those on a GPU are copied there, in turn with the work that it was given
    before, and no thread waits; they come to the host when `on_host` is called, in whichever thread, by a stream of its
    own, so that the work given since does not have to end first.
    """

    def __init__(self, state: Any) -> None:
        self._ready: dict[torch.device, torch.cuda.Event] = {}
        self._state = self._copied(state)
        for device, event in self._ready.items():
            event.record(torch.cuda.current_stream(device))

    @contextmanager
    def own_streams(self) -> Iterator[None]:
        """Within it, what this thread asks of a GPU waits for the work given before the snapshot, and for no other."""
        with ExitStack() as stack:
            for device, event in self._ready.items():
                stream = _stream(device)
                stream.wait_event(event)
                stack.enter_context(torch.cuda.stream(stream))
            yield

    def on_host(self) -> Any:
        """The state with all tensors on the CPU; the copies on the GPU are given up."""
        state, self._state = self._state, None
        return _on_host(state)

    def _copied(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            if _on_gpu(value) and value.device not in self._ready:
                self._ready[value.device] = torch.cuda.Event()  # type: ignore[no-untyped-call]
            return value.detach().clone()
        if isinstance(value, dict):
            return {key: self._copied(item) for key, item in value.items()}
        return [self._copied(item) for item in value] if isinstance(value, list | tuple) else value


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """One for all checkpoints: PyTorch has 32, and hands out those of other threads after that."""
    return torch.cuda.Stream(device)  # type: ignore[no-untyped-call]


def _on_gpu(tensor: Tensor) -> bool:
    return tensor.is_cuda


def _on_host(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.cpu()
    if isinstance(value, dict):
        return {key: _on_host(item) for key, item in value.items()}
    return [_on_host(item) for item in value] if isinstance(value, list | tuple) else value
