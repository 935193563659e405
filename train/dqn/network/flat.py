"""The weights of a network as one tensor."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn

ROWS = 8  # a matrix on a GPU is padded to a multiple of these: tensor cores take eight numbers at a time
_ALIGNMENT = 64  # numbers: of 2 bytes, 128 bytes, which every kernel likes its matrices to begin at


def flatten(network: nn.Module) -> Tensor:
    """Move the parameters of a network into one tensor, its `flat`, of which they are views from now on; returns it.

    On a GPU matrices have room for a multiple of `ROWS` rows; what no parameter has is 0.
    """
    *_, last = _spans(network)
    flat = torch.zeros(last.stop, device=next(network.parameters()).device)
    for view, parameter in zip(views(flat, network), network.parameters(), strict=True):
        parameter.data = view.copy_(parameter)
    network.flat = flat
    return flat


def views(flat: Tensor, network: nn.Module) -> list[Tensor]:
    """What lies in a flat tensor for each parameter of the network, in order and shape."""
    starts = (span.start for span in _spans(network))
    return [flat[k : k + each.numel()].view(each.shape) for k, each in zip(starts, network.parameters(), strict=True)]


def _spans(network: nn.Module) -> Iterator[slice]:
    start = 0
    for parameter in network.parameters():
        size = parameter.numel()
        if parameter.device.type == "cuda":
            size = size // len(parameter) * padded(len(parameter), ROWS)
        yield slice(start, start + size)
        start += padded(size, _ALIGNMENT)


def padded(size: int, unit: int) -> int:
    """The least multiple of `unit` that is not less."""
    return -(-size // unit) * unit
