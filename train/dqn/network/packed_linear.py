"""The first layer of a network, straight from packed observations, by either of two kernels.

It sees the first `bits` bits of an observation, which may have more.

`gather`: an observation has few bits set (60 of 918 in Tressette), so the product with its bits is the sum of the rows
of the weight at those bits. Sums are float32; compiled loops for a CPU.
`unpack`: the bits are written out in the number format that the chip multiplies fastest, and multiplied.

Which is faster depends on the chip: see `first_layer.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cards.compiled.bits import WORD, bit, lowest, popcount
from cards.compiled.jit import njit
from train.dqn.network.bits import unpack_tensor
from train.dqn.network.matmul import linear, multiply_into


class PackedLinear(nn.Module):
    """A linear layer with ReLU on packed observations: int64 `[batch, words]` -> `[batch, width]`.

    No autograd: `trace` and `gradient` are the forward and the backward pass.
    """

    def __init__(self, bits: int, width: int) -> None:
        super().__init__()
        self.bits = bits
        self._gathers = True
        self._format = torch.float32
        bound = 1 / math.sqrt(bits)  # as torch.nn.Linear
        self.weight = nn.Parameter(torch.empty(bits, width).uniform_(-bound, bound), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound), requires_grad=False)

    def to_format(self, dtype: torch.dtype, gathers: bool) -> None:
        """From now on the output is of this number format, and with `gathers` on a CPU a sum of rows in float32."""
        self._gathers, self._format = gathers, dtype
        self.to(torch.float32 if gathers and self.weight.device.type == "cpu" else dtype)

    def forward(self, words: Tensor) -> Tensor:
        """The layer's output."""
        return self.trace(words)[1]

    def trace(self, words: Tensor) -> tuple[Tensor, Tensor]:
        """What `gradient` wants to know of the input, `[batch, ...]`, and the layer's output."""
        if self._gathers and words.device.type == "cpu":
            out = torch.empty(len(words), self.bias.numel(), dtype=self._format)
            sums = _sums_in_bfloat16 if out.dtype == torch.bfloat16 else _sums
            sums(packed(words), self.bits, self.weight.numpy(), self.bias.numpy(), as_numpy(out))
            return words, out
        unpacked = unpack_tensor(words, self.bits, self._format)
        return unpacked, linear(unpacked, self.weight.t(), self.bias, relu=True)

    def gradient(self, seen: Tensor, of_sum: Tensor, of_weight: Tensor) -> None:
        """Write the gradient of the weight, given that of the output before its ReLU, `[batch, width]`."""
        if seen.dtype == torch.int64:
            add = _add_bfloat16 if of_sum.dtype == torch.bfloat16 else _add
            add(packed(seen), self.bits, as_numpy(of_sum), of_weight.zero_().numpy())
        else:
            multiply_into(of_weight, seen.t(), of_sum)


def packed(words: Tensor) -> NDArray[np.uint64]:
    """The words of a tensor, unsigned."""
    return words.numpy().view(np.uint64)


def as_numpy(values: Tensor) -> NDArray[Any]:
    """NumPy knows no bfloat16: its bits as integers."""
    return values.view(torch.uint16).numpy() if values.dtype == torch.bfloat16 else values.numpy()


@njit
def seen_word(words: NDArray[np.uint64], k: int, bits: int) -> np.uint64:
    """Word `k` of a row, of which no more than the first `bits` bits are looked at."""
    left = bits - WORD * k
    return words[k] if left >= WORD else words[k] & (bit(left) - np.uint64(1))


@njit
def _set_bits(words: NDArray[np.uint64], bits: int, out: NDArray[np.int64]) -> int:
    """Write the indices of the set bits of a row, rising; returns how many there are."""
    count = 0
    for k in range((bits + WORD - 1) // WORD):
        word = seen_word(words, k, bits)
        for _ in range(popcount(word)):
            out[count] = WORD * k + lowest(word)
            word &= word - np.uint64(1)
            count += 1
    return count


@njit
def sum_row(
    found: NDArray[np.int64],
    count: int,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    total: NDArray[np.float32],
) -> None:
    """Write the bias and the rows of the weight that were found, summed up."""
    width = bias.size
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
def _sums(
    words: NDArray[np.uint64],
    bits: int,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    out: NDArray[np.float32],
) -> None:
    found = np.empty(WORD * words.shape[1], np.int64)
    for row in range(words.shape[0]):
        sum_row(found, _set_bits(words[row], bits, found), weight, bias, out[row])
        relu(out[row])


@njit(nogil=True)
def _sums_in_bfloat16(
    words: NDArray[np.uint64],
    bits: int,
    weight: NDArray[np.float32],
    bias: NDArray[np.float32],
    out: NDArray[np.uint16],
) -> None:
    found = np.empty(WORD * words.shape[1], np.int64)
    total = np.empty(bias.size, np.float32)
    for row in range(words.shape[0]):
        sum_row(found, _set_bits(words[row], bits, found), weight, bias, total)
        relu_in_bfloat16(total, out[row])


@njit
def relu_in_bfloat16(total: NDArray[np.float32], out: NDArray[np.uint16]) -> None:
    """Write what is not below 0 in bfloat16: to the nearest, of two the even one; what is no number stays none."""
    bits = total.view(np.uint32)
    for column in range(total.size):
        last = (bits[column] >> np.uint32(16)) & np.uint32(1)
        rounded = np.uint16((bits[column] + np.uint32(0x7FFF) + last) >> np.uint32(16))
        out[column] = np.uint16(0) if total[column] < np.float32(0) else rounded


@njit
def relu(total: NDArray[np.float32]) -> None:
    """What is below 0 becomes 0; what is no number stays none."""
    for column in range(total.size):
        total[column] = np.float32(0) if total[column] < np.float32(0) else total[column]


@njit
def add_row(found: NDArray[np.int64], count: int, own: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    """Add a row to those that were found."""
    for k in range(count):
        total = out[found[k]]
        for column in range(own.size):
            total[column] += own[column]


@njit(nogil=True)
def _add(words: NDArray[np.uint64], bits: int, gradient: NDArray[np.float32], out: NDArray[np.float32]) -> None:
    found = np.empty(WORD * words.shape[1], np.int64)
    for row in range(words.shape[0]):
        add_row(found, _set_bits(words[row], bits, found), gradient[row], out)


@njit(nogil=True)
def _add_bfloat16(words: NDArray[np.uint64], bits: int, gradient: NDArray[np.uint16], out: NDArray[np.float32]) -> None:
    found = np.empty(WORD * words.shape[1], np.int64)
    own = np.empty(gradient.shape[1], np.float32)
    short = own.view(np.uint32)
    for row in range(words.shape[0]):
        for column in range(own.size):
            short[column] = np.uint32(gradient[row, column]) << np.uint32(16)
        add_row(found, _set_bits(words[row], bits, found), own, out)
