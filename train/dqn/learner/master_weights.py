"""Weights in two number formats: float32 masters, which are learned, and short copies, which are multiplied.

Sums of many small steps need float32; products of layers do not (Micikevicius et al., 2018, section 3.1).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor

from train.dqn.network.q_network import QNetwork

_ALIGNMENT = 64  # numbers: of 2 bytes, 128 bytes, which every kernel likes its matrices to begin at


class MixedNetwork:
    """A network as `masters`, float32 views of the one tensor `flat`, and as `working`, whose hidden layers are short.

    What is done to all weights is one operation on `flat`. The short weights lie in one tensor, too; the others are
    the masters. `round` follows a change of the masters. The same for gradients: there `working` is written, and
    `collect` makes the masters follow.
    """

    def __init__(self, network: QNetwork, dtype: torch.dtype, gathers: bool = True) -> None:
        self.masters = network
        self._format = dtype
        self.flat = torch.zeros(size(network), device=network.head.weight.device)
        for view, parameter in zip(split(self.flat, network), network.parameters(), strict=True):
            view.copy_(parameter)
            parameter.data = view
        self.use_first_layer(gathers)

    def use_first_layer(self, gathers: bool) -> None:
        """Which kernel the first layer of `working` runs on, and so its format; see `PackedLinear`."""
        self._gathers = gathers
        self.working = copy.deepcopy(self.masters).to_format(self._format, gathers)
        parameters = list(zip(_spans(self.masters), self.working.parameters(), self.masters.parameters(), strict=True))
        short = [span for span, own, _ in parameters if own.dtype != torch.float32]
        self._span = slice(short[0].start, short[-1].stop) if short else slice(0, 0)
        self._short = self.flat[self._span].to(self._format)
        for span, own, master in parameters:
            if own.dtype == torch.float32:
                own.data = master.data
            else:
                own.data = self._short[span.start - self._span.start : span.stop - self._span.start].view(own.shape)

    def twin(self) -> MixedNetwork:
        """Another one of this kind with the same weights."""
        return MixedNetwork(copy.deepcopy(self.masters), self._format, self._gathers)

    def round(self) -> None:
        """Write the masters of the hidden layers to their short copies."""
        if len(self._short):
            self._short.copy_(self.flat[self._span])

    def collect(self) -> None:
        """Write the short copies to their masters."""
        if len(self._short):
            self.flat[self._span].copy_(self._short)


def size(network: QNetwork) -> int:
    """How many numbers the flat tensor of a network has."""
    return max(span.stop for span in _spans(network))


def split(flat: Tensor, network: QNetwork) -> list[Tensor]:
    """Views of what lies in a flat tensor, in the order and shapes of the network's parameters."""
    shapes = [parameter.shape for parameter in network.parameters()]
    return [flat[span].view(shape) for span, shape in zip(_spans(network), shapes, strict=True)]


def _spans(network: QNetwork) -> Iterator[slice]:
    start = 0
    for parameter in network.parameters():
        yield slice(start, start + parameter.numel())
        start += -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT
