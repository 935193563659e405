"""The first layer of a network, straight from packed observations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor, nn

from cards.bits import WORD, lowest, popcount
from train.dqn.torch_bits import unpack_tensor


class PackedLinear(nn.Module):
    """A linear layer on packed observations: int64 `[batch, words]` -> float32 `[batch, width]`.

    An observation has few bits set (45 of 462 in Tressette), so on a CPU the product with its bits is taken as the sum
    of the rows of the weight at those bits, which is several times faster than unpacking and multiplying. On a GPU,
    which multiplies faster than it gathers, the bits are unpacked there.
    """

    def __init__(self, bits: int, width: int) -> None:
        super().__init__()
        self.bits = bits
        bound = 1 / math.sqrt(bits)  # as torch.nn.Linear
        self.weight = nn.Parameter(torch.empty(bits, width).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound))

    def forward(self, words: Tensor) -> Tensor:
        """The layer's output, before any activation."""
        if words.device.type == "cpu":
            return _SumOfRows.apply(words, self.weight, self.bias)  # type: ignore[no-untyped-call]
        dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else self.weight.dtype
        return torch.addmm(self.bias, unpack_tensor(words, self.bits, dtype), self.weight)


class _SumOfRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, words: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(words, weight)
        out = torch.empty(len(words), weight.shape[1])
        _sum_rows(_packed(words), weight.detach().numpy(), bias.detach().numpy(), out.numpy())
        return out

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[None, Tensor, Tensor]:
        words, weight = ctx.saved_tensors
        gradient = gradients[0].contiguous()
        to_weight = torch.zeros_like(weight)
        _add_to_rows(_packed(words), gradient.numpy(), to_weight.numpy())
        return None, to_weight, gradient.sum(0)


def _packed(words: Tensor) -> NDArray[np.uint64]:
    return words.numpy().view(np.uint64)


@njit
def _set_bits(words: NDArray[np.uint64], out: NDArray[np.int64]) -> int:
    """Write the indices of the set bits of a row, rising; returns how many there are."""
    count = 0
    for k in range(words.size):
        word = words[k]
        for _ in range(popcount(word)):
            out[count] = WORD * k + lowest(word)
            word &= word - np.uint64(1)
            count += 1
    return count


@njit(nogil=True)
def _sum_rows(
    words: NDArray[np.uint64], weight: NDArray[np.float32], bias: NDArray[np.float32], out: NDArray[np.float32]
) -> None:
    width = bias.size
    found = np.empty(WORD * words.shape[1], np.int64)
    for row in range(words.shape[0]):
        count = _set_bits(words[row], found)
        total = out[row]
        for column in range(width):  # not total[:] = bias, which takes two seconds to compile
            total[column] = bias[column]
        # Four rows at a time: the running total is read and written a quarter as often.
        for k in range(0, count - 3, 4):
            a, b, c, d = weight[found[k]], weight[found[k + 1]], weight[found[k + 2]], weight[found[k + 3]]
            for column in range(width):
                total[column] += (a[column] + b[column]) + (c[column] + d[column])
        for k in range(count & ~3, count):
            a = weight[found[k]]
            for column in range(width):
                total[column] += a[column]


@njit(nogil=True)
def _add_to_rows(words: NDArray[np.uint64], gradient: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    width = out.shape[1]
    found = np.empty(WORD * words.shape[1], np.int64)
    for row in range(words.shape[0]):
        own = gradient[row]
        for k in range(_set_bits(words[row], found)):
            total = out[found[k]]
            for column in range(width):
                total[column] += own[column]
