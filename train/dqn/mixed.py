"""Weights in two number formats: float32 masters, which are learned, and short copies, which are multiplied.

Sums of many small steps need float32; products of layers do not (Micikevicius et al., 2018, section 3.1).
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from train.dqn.network import QNetwork

_ALIGNMENT = 64  # numbers: of 2 bytes, 128 bytes, which every kernel likes its matrices to begin at


class MixedNetwork:
    """A network as `masters`, float32 views of the one tensor `flat`, and as `working`, whose hidden layers are short.

    What is done to all weights is one operation on `flat`. The short weights lie in one tensor, too; the others are
    the masters. `round` follows a change of the masters. The same for gradients: there `working` is written, and
    `collect` makes the masters follow.
    """

    def __init__(self, network: QNetwork, dtype: torch.dtype, gathers: bool = True) -> None:
        self.masters = network
        self._format, self._gathers = dtype, gathers
        self.flat = torch.zeros(size(network), device=network.head.weight.device)
        _move(network, self.flat)
        self.working = copy.deepcopy(network).to_format(dtype, gathers)
        spans = list(_spans(network))
        parameters = list(self.working.parameters())
        short = [span for span, own in zip(spans, parameters, strict=True) if own.dtype != torch.float32]
        self._span = slice(short[0].start, short[-1].stop) if short else slice(0, 0)
        self._short = self.flat[self._span].to(dtype)
        for span, own, master in zip(spans, parameters, network.parameters(), strict=True):
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


def join(parts: Sequence[Tensor], network: QNetwork) -> Tensor:
    """The reverse of `split`, on the device of the network."""
    flat = torch.zeros(size(network), device=network.head.weight.device)
    for view, part in zip(split(flat, network), parts, strict=True):
        view.copy_(part)
    return flat


def _move(network: QNetwork, flat: Tensor) -> None:
    for view, parameter in zip(split(flat, network), network.parameters(), strict=True):
        view.copy_(parameter)
        parameter.data = view


def _spans(network: QNetwork) -> Iterator[slice]:
    start = 0
    for parameter in network.parameters():
        yield slice(start, start + parameter.numel())
        start += -(-parameter.numel() // _ALIGNMENT) * _ALIGNMENT
