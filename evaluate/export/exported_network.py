"""A Q-network as a module that PyTorch's exporter follows, from observations as a file takes them to values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from busso.cards.compiled.bits import WORD
from busso.train.dqn.network.q_network import QNetwork

_BYTE = 8


class ExportedNetwork(nn.Module):
    """Observations `[batch, words]` (uint64) or `[batch, bits]` (float32) -> values `[batch, actions]`."""

    shifts: Tensor
    bits_of_byte: Tensor

    def __init__(self, network: QNetwork) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("shifts", torch.arange(0, WORD, _BYTE).to(torch.uint64))
        self.register_buffer("bits_of_byte", (torch.arange(256)[:, None] >> torch.arange(_BYTE) & 1).float())

    def forward(self, observation: Tensor) -> Tensor:
        """Values of all actions, legal or not."""
        values: Tensor = self.network(observation if observation.is_floating_point() else self._unpacked(observation))
        return values

    def _unpacked(self, words: Tensor) -> Tensor:
        """Words to bits, the lowest first: each byte by a look into a table, which is faster than shifting bit by bit.

        PyTorch has no operators on uint64; these are ONNX's own.
        """
        shape = (*words.shape, WORD // _BYTE)
        shifted = torch.onnx.ops.symbolic(
            "BitShift", (words.unsqueeze(-1), self.shifts), {"direction": "RIGHT"}, dtype=torch.uint64, shape=shape
        )
        mask = torch.tensor(255, dtype=torch.uint64)
        byte = torch.onnx.ops.symbolic("BitwiseAnd", (shifted, mask), dtype=torch.uint64, shape=shape)
        return self.bits_of_byte[byte.to(torch.int64)].flatten(1)
