"""First layer of a network, computed directly from packed observations, with the same weights for each part of a game.

It sees the first bits of an observation, which may have more. On a CPU the product is the sum of the weight rows of the
set bits (60 of 918 in Tressette), in float32. Unpacking and multiplying takes longer, forward and backward: 4.6 to 6.6
times for Tressette, 2.4 to 4.8 times for Spike; PyTorch's embedding_bag takes 1.3 and 2 times as long (AMD EPYC, one
thread, bfloat16 and float32). A GPU multiplies.
"""

import math
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from busso.cards.compiled.bits import WORD, bit, lowest
from busso.cards.compiled.jit import njit
from busso.cards.compiled.symmetry import Symmetry
from busso.train.network.matmul import before_relu, by_own_code, linear

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]
Floats = NDArray[np.float32]


class PackedLinear(nn.Module):
    """Linear layer with ReLU on the observation bits of each part, or on all of `bits` without a symmetry.

    Packed observations, int64 `[batch, words]` -> `[parts * batch, width]`, part by part. The weight has a row for each
    bit of a part, by place, followed by a row for each bit of no part.
    """

    places: Tensor

    def __init__(self, seen: Symmetry | int, width: int) -> None:
        super().__init__()
        if isinstance(seen, int):
            seen = Symmetry(1, np.zeros(seen, np.int64), np.arange(seen))
        self.bits, self.parts = seen.places + seen.common, seen.parts  # weight rows, output rows per observation
        bound = 1 / math.sqrt(self.bits)  # as torch.nn.Linear
        self.weight = nn.Parameter(torch.empty(self.bits, width).uniform_(-bound, bound), requires_grad=False)
        self.bias = nn.Parameter(torch.empty(width).uniform_(-bound, bound), requires_grad=False)
        row = np.where(seen.part < 0, seen.places, 0) + seen.place
        part_of = np.where(seen.part < 0, seen.parts, seen.part)
        self._bits = _Bits(part_of.astype(np.uint64), row.astype(np.uint64), seen.parts)
        bit_of = np.empty((self.parts, self.bits), np.int64)
        for part in range(self.parts):
            mine = np.flatnonzero((seen.part == part) | (seen.part < 0))
            bit_of[part, row[mine]] = mine
        self.register_buffer("places", torch.from_numpy(bit_of), persistent=False)  # moves between devices

    @property
    def bit_of(self) -> Integers:
        """Observation bit read by each row of the weight, for each part: `[parts, bits]`."""
        return self.places.cpu().numpy()

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
        _sums(words.numpy().view(np.uint64), self._bits, self.weight.numpy(), self.bias.numpy(), sums.numpy())
        return sums.to(dtype)

    def multiply(self, words: Tensor, dtype: torch.dtype) -> Tensor:
        """Compute the output as a matrix product with the unpacked bits."""
        seen = bits_at(words, self.places).transpose(0, 1).to(dtype)  # [parts, batch, bits]
        return linear(seen.flatten(0, 1), self.weight.t(), self.bias, relu=True)


def bits_at(words: Tensor, places: Tensor) -> Tensor:
    """Return the bits at `places` of packed observations `[batch, words]` as 0 and 1: `[batch, *places.shape]`.

    Also accepts unpacked observations, float32 `[batch, bits]`, which exports use.
    """
    if words.is_floating_point():
        return words[:, places]
    return words[:, places >> 6] >> (places & 63) & 1


class _Gather(torch.autograd.Function):
    """Sums of a layer's weight rows, and their derivatives."""

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
        _add(words.numpy().view(np.uint64), ctx.layer._bits, of_sum.float().numpy(), of_weight.numpy())
        return None, of_weight, of_sum.sum(0).float(), None, None


class _Bits(NamedTuple):
    """Part of each observation bit, `parts` for none, and its row in the weight.

    Both are unsigned, as Numba checks each signed index for less than 0: `_find` then takes 1.8 times as long.
    """

    part: Words
    row: Words
    parts: int


@njit
def _word(words: Words, k: int, bits: int) -> np.uint64:
    """Return word `k` of a row, with the bits after the first `bits` cleared."""
    left = bits - WORD * k
    return words[k] if left >= WORD else words[k] & (bit(left) - np.uint64(1))


@njit
def _find(words: Words, bits: _Bits, found: Words, counts: Integers) -> None:
    """Write the weight rows of the set bits: `found[p]` for part `p`, the last entry for bits of no part."""
    for k in range(counts.size):
        counts[k] = 0
    for k in range((bits.part.size + WORD - 1) // WORD):
        word, first = _word(words, k, bits.part.size), np.uint64(WORD * k)
        while word != np.uint64(0):
            at = first + np.uint64(lowest(word))
            word &= word - np.uint64(1)
            p = bits.part[at]
            found[p, counts[p]] = bits.row[at]
            counts[p] += 1


@njit
def _sum_row(found: Words, count: int, weight: Floats, bias: Floats, total: Floats) -> None:
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
def _sums(words: Words, bits: _Bits, weight: Floats, bias: Floats, out: Floats) -> None:
    """Write for each part the bias plus the weight rows of the set bits, after the ReLU, which keeps NaN."""
    parts, rows = bits.parts, words.shape[0]
    found, counts = np.empty((parts + 1, bits.part.size), np.uint64), np.empty(parts + 1, np.int64)
    common = np.empty(bias.size, np.float32)
    for k in range(rows):
        _find(words[k], bits, found, counts)
        start = bias
        if counts[parts]:
            start = common
            _sum_row(found[parts], counts[parts], weight, bias, common)
        for p in range(parts):
            total = out[p * rows + k]
            _sum_row(found[p], counts[p], weight, start, total)
            for column in range(total.size):
                total[column] = np.float32(0) if total[column] < np.float32(0) else total[column]


@njit
def _add_row(found: Words, count: int, own: Floats, out: Floats) -> None:
    """Add the row `own` to the rows `found[:count]` of `out`."""
    for k in range(count):
        total = out[found[k]]
        for column in range(own.size):
            total[column] += own[column]


@njit(nogil=True)
def _add(words: Words, bits: _Bits, gradient: Floats, out: Floats) -> None:
    """Add each part's gradient to the rows of its bits, and the sum over the parts to the rows of no part."""
    parts, rows = bits.parts, words.shape[0]
    found, counts = np.empty((parts + 1, bits.part.size), np.uint64), np.empty(parts + 1, np.int64)
    common = np.empty(gradient.shape[1], np.float32)
    for k in range(rows):
        _find(words[k], bits, found, counts)
        for p in range(parts):
            _add_row(found[p], counts[p], gradient[p * rows + k], out)
        if counts[parts]:
            for column in range(common.size):
                common[column] = gradient[k, column]
            for p in range(1, parts):
                for column in range(common.size):
                    common[column] += gradient[p * rows + k, column]
            _add_row(found[parts], counts[parts], common, out)
