"""Replay of a gradient step as one CUDA graph, because launching its kernels takes longer than running them."""

import logging
from collections.abc import Callable

import torch
from torch import Tensor

from busso.train.network.own_network import LOSSES, OwnNetwork
from busso.train.network.q_network import QNetwork
from busso.train.settings.dqn import AUTO, LearnerSettings

log = logging.getLogger("train")

EAGER_CALLS = 3  # before the capture: in these, libraries allocate workspaces, which a capture must not


def graphed(settings: LearnerSettings, network: QNetwork) -> bool:
    """Return whether a learner replays its gradient step as a CUDA graph, by `learner.cuda_graph` and the device."""
    if network.device.type != "cuda":
        return False
    if settings.cuda_graph != AUTO:
        return bool(settings.cuda_graph)
    # A user's code may compute something else in each call, depending on Python values that a graph ignores.
    return settings.loss in LOSSES and not isinstance(network, OwnNetwork)


class GraphedStep:
    """Function of buffer indices that is captured as a CUDA graph after a few calls, and replayed from then on.

    A replay runs the same kernels on the same memory, so whatever the function reads or writes must stay in the same
    tensors. If the capture fails, a warning names the reason, `zero_grad` is called, and all calls remain eager.
    """

    def __init__(self, function: Callable[[Tensor], None], zero_grad: Callable[[], None]) -> None:
        self._function, self._zero_grad = function, zero_grad
        self._eager_calls = EAGER_CALLS
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        # Kept even if its capture fails, as PyTorch's allocator may still refer to it.
        self._graph, self._captured = torch.cuda.CUDAGraph(), False
        self._index = torch.empty(0)

    def __call__(self, index: Tensor) -> None:
        """Run the function on these indices, int64 `[batch]`, of the same number in each call."""
        if self._eager_calls == 0 and not self._captured:
            self._capture(index)
        if self._captured:
            self._index.copy_(index)
            self._graph.replay()
        else:
            self._eager_calls -= 1
            self._run(index)

    def _run(self, index: Tensor) -> None:
        """Run the function on a stream of its own, as a capture requires of the calls before it."""
        here = torch.cuda.current_stream()
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            self._function(index)
        here.wait_stream(self._stream)

    def _capture(self, index: Tensor) -> None:
        """Capture the function without running it."""
        self._index = index.clone()
        failure: Exception | None = None
        try:
            # The outer context restores the stream even if the end of the capture fails. Threads may use the device.
            with (
                torch.cuda.stream(torch.cuda.current_stream()),
                torch.cuda.graph(self._graph, capture_error_mode="thread_local"),
            ):
                try:
                    self._function(self._index)
                except Exception as error:  # PyTorch's, CUDA's, or one of the user's own code
                    failure = error
        except RuntimeError as error:  # the end of a capture that has failed fails, too
            failure = failure or error
        self._captured = failure is None
        if failure is not None:
            name, text = type(failure).__name__, str(failure).strip().partition("\n")[0]
            log.warning("learner.cuda_graph: %s: %s; the kernels of updates are launched one by one", name, text)
            self._zero_grad()
