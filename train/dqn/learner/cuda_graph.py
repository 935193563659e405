"""Replay of a gradient step as one CUDA graph: launching its kernels takes longer than running them."""

from __future__ import annotations

import logging
from collections.abc import Callable

import torch
from torch import Tensor

from busso.train.dqn.network.own_network import LOSSES, OwnNetwork
from busso.train.dqn.network.q_network import QNetwork
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

    A replay runs the same kernels on the same memory, so whatever the function reads or writes, `optimizer` included,
    must stay in the same tensors. If the capture fails, a warning names the reason, and all calls remain eager.
    """

    def __init__(self, function: Callable[[Tensor], None], optimizer: torch.optim.Optimizer) -> None:
        self._function, self._optimizer = function, optimizer
        self._eager_calls: float = EAGER_CALLS
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._graph: torch.cuda.CUDAGraph | None = None
        self._index = torch.empty(0)

    def __call__(self, index: Tensor) -> None:
        """Run the function on these indices, int64 `[batch]`, of the same number in each call."""
        if self._graph is None and self._eager_calls == 0:
            self._capture(index)
        if self._graph is None:
            self._eager_calls -= 1
            self._run(index)
        else:
            self._index.copy_(index)
            self._graph.replay()

    def _run(self, index: Tensor) -> None:
        """Run the function on a stream of its own, as a capture requires of the calls before it."""
        here = torch.cuda.current_stream()
        self._stream.wait_stream(here)
        with torch.cuda.stream(self._stream):
            self._function(index)
        here.wait_stream(self._stream)

    def _capture(self, index: Tensor) -> None:
        """Capture the function without running it."""
        graph, self._index = torch.cuda.CUDAGraph(), index.clone()
        group = self._optimizer.param_groups[0]
        group["capturable"] = True
        try:
            # Other threads, such as one that writes a checkpoint, may use the device meanwhile.
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._function(self._index)
        except Exception as error:  # PyTorch's, CUDA's, or one of the user's own code
            text = str(error).strip().partition("\n")[0]
            name = type(error).__name__
            log.warning("learner.cuda_graph: %s: %s; the kernels of updates are launched one by one", name, text)
            group["capturable"] = False
            self._optimizer.zero_grad()
            self._eager_calls = torch.inf
        else:
            self._graph = graph
