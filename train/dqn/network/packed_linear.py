"""First layer of a network, computed directly from packed observations.

It sees the first `bits` bits of an observation, which may have more. On a CPU the product is the sum of the weight rows
of the set bits (60 of 918 in Tressette), in float32. Unpacking and multiplying takes longer, forward and backward: 4.6
to 6.6 times for Tressette, 2.4 to 4.8 times for Spike; PyTorch's embedding_bag takes 1.3 and 2 times as long (AMD EPYC,
one thread, bfloat16 and float32). A GPU multiplies.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from busso.cards.compiled.bits import WORD, bit, lowest, popcount
from busso.cards.compiled.jit import njit
from busso.train.dqn.network.matmul import before_relu, by_own_code, linear

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Floats = NDArray[np.float32]


class PackedLinear(nn.Module):
    """Linear layer with ReLU on packed observations: int64 `[batch, words]` -> `[batch, width]`."""

    places: Tensor

    def __init__(self, bits: int, width: int) -> None:
        super().__init__()
        self.bits = bits
        self.parts = 1  # output rows per observation
        bound = 1 / math.sqrt(bits)  # as torch.nn.Linear
        self.weight = nn.Parameter(torch.empty(bits, width).uniform_(-bound, bound), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound), requires_grad=False)
        self._set_places(np.arange(bits).reshape(1, bits))

    @property
    def bit_of(self) -> Integers:
        """Observation bit read by each row of the weight, for each part: `[parts, bits]`."""
        return self.places.cpu().numpy()

    def _set_places(self, bit_of: Integers) -> None:
        """Register `places`, a copy of `bit_of` that moves with the layer between devices."""
        self.register_buffer("places", torch.from_numpy(bit_of), persistent=False)

    def forward(self, words: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
        """Return the layer's output in this number format."""
        if by_own_code(words):
            if not torch.is_grad_enabled():
                return self._gathered(words, dtype)
            out: Tensor = _Gather.apply(words, self.weight, self.bias, self, dtype)  # type: ignore[no-untyped-call]
            return out
        return self.multiply(words, dtype)

    def _gathered(self, words: Tensor, dtype: torch.dtype) -> Tensor:
        sums = torch.empty(len(words) * self.parts, self.bias.numel())
        self.gather(words.numpy().view(np.uint64), sums.numpy())
        return sums.to(dtype)

    def multiply(self, words: Tensor, dtype: torch.dtype) -> Tensor:
        """Compute the output as a matrix product with the unpacked bits."""
        seen = bits_at(words, self.places).transpose(0, 1).to(dtype)  # [parts, batch, bits]
        return linear(seen.flatten(0, 1), self.weight.t(), self.bias, relu=True)

    def gather(self, words: Words, out: Floats) -> None:
        """Write the bias plus the weight rows of the set bits, after the ReLU."""
        _sums(words, self.bits, self.weight.numpy(), self.bias.numpy(), out)

    def scatter(self, words: Words, of_sum: Floats, of_weight: Floats) -> None:
        """Add the gradient of the sums to the weight gradient's rows of the set bits."""
        _add(words, self.bits, of_sum, of_weight)


def bits_at(words: Tensor, places: Tensor) -> Tensor:
    """Return the bits at `places` of packed observations `[batch, words]` as 0 and 1: `[batch, *places.shape]`.

    Also accepts unpacked observations, float32 `[batch, bits]`, which exports use.
    """
    if words.is_floating_point():
        return words[:, places]
    return words[:, places >> 6] >> (places & 63) & 1


class _Gather(torch.autograd.Function):
    """Output of a layer's `gather`, with `scatter` as its derivative."""

    @staticmethod
    def forward(
        ctx: Any, words: Tensor, weight: Tensor, bias: Tensor, layer: PackedLinear, dtype: torch.dtype
    ) -> Tensor:
        ctx.layer, out = layer, layer._gathered(words, dtype)
        ctx.save_for_backward(words, out)
        return out

    @staticmethod
    def backward(ctx: Any, of_out: Tensor) -> tuple[Tensor | None, ...]:
        words, out = ctx.saved_tensors
        of_sum = before_relu(of_out, out)
        of_weight = torch.zeros_like(ctx.layer.weight)
        ctx.layer.scatter(words.numpy().view(np.uint64), of_sum.float().numpy(), of_weight.numpy())
        return None, of_weight, of_sum.sum(0).float(), None, None


@njit
def seen_word(words: Words, k: int, bits: int) -> np.uint64:
    """Return word `k` of a row, with the bits after the first `bits` cleared."""
    left = bits - WORD * k
    return words[k] if left >= WORD else words[k] & (bit(left) - np.uint64(1))


@njit
def _set_bits(words: Words, bits: int, out: Integers) -> int:
    """Write the indices of the set bits of a row in ascending order; return their number."""
    count = 0
    for k in range((bits + WORD - 1) // WORD):
        word = seen_word(words, k, bits)
        for _ in range(popcount(word)):
            out[count] = WORD * k + lowest(word)
            word &= word - np.uint64(1)
            count += 1
    return count


@njit
def sum_row(found: Integers, count: int, weight: Floats, bias: Floats, total: Floats) -> None:
    """Write the bias plus the weight rows `found[:count]`."""
    width = bias.size
    for column in range(width):  # total[:] = bias would take two seconds to compile
        total[column] = bias[column]
    # Four rows at a time read and write the running total a quarter as often.
    for k in range(0, count - 3, 4):
        a, b, c, d = weight[found[k]], weight[found[k + 1]], weight[found[k + 2]], weight[found[k + 3]]
        for column in range(width):
            total[column] += (a[column] + b[column]) + (c[column] + d[column])
    for k in range(count & ~3, count):
        a = weight[found[k]]
        for column in range(width):
            total[column] += a[column]


@njit(nogil=True)
def _sums(words: Words, bits: int, weight: Floats, bias: Floats, out: Floats) -> None:
    found = np.empty(WORD * words.shape[1], np.int64)
    for row in range(words.shape[0]):
        sum_row(found, _set_bits(words[row], bits, found), weight, bias, out[row])
        relu(out[row])


@njit
def relu(total: Floats) -> None:
    """Set negative values to 0 and keep NaN."""
    for column in range(total.size):
        total[column] = np.float32(0) if total[column] < np.float32(0) else total[column]


@njit
def add_row(found: Integers, count: int, own: Floats, out: Floats) -> None:
    """Add the row `own` to the rows `found[:count]` of `out`."""
    for k in range(count):
        total = out[found[k]]
        for column in range(own.size):
            total[column] += own[column]


@njit(nogil=True)
def _add(words: Words, bits: int, gradient: Floats, out: Floats) -> None:
    found = np.empty(WORD * words.shape[1], np.int64)
    for row in range(words.shape[0]):
        add_row(found, _set_bits(words[row], bits, found), gradient[row], out)
