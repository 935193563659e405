"""Passes over the rows of a layer with shared weights, each in place of two or three of PyTorch's.

The sum over `parts` blocks of rows and the deviations of all blocks but the last from their mean determine the blocks,
as deviations add up to zero. Numba has no bfloat16: it gets integers, the upper 16 or all 32 bits of float32 numbers.
"""

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from busso.cards.compiled.jit import njit

Bits = NDArray[np.uint32]  # or uint16
Floats = NDArray[np.float32]


def split(x: Tensor, parts: int, out: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor]:
    """Return the sum over the parts, `[batch, width]`, and the deviations, `[(parts - 1) * batch, width]`.

    With `out`, the output of a ReLU, `x` is the gradient after it and is split as that before it; then the third tensor
    holds the differences of all parts but the last from the last.
    """
    batch, width = len(x) // parts, x.shape[1]
    total, rest = x.new_empty(batch, width), x.new_empty(len(x) - batch, width)
    to_last, of_relu = (rest, x) if out is None else (torch.empty_like(rest), out)
    tensors = [_bits(each, batch) for each in (x, of_relu, total, rest, to_last)]
    _split(*tensors, _shift(x), out is not None)
    return total, rest, to_last


def join(mean: Tensor, deviations: Tensor, relu: bool) -> Tensor:
    """Return the rows of all parts, `[parts * batch, width]`, with this mean and these deviations; or their ReLU."""
    out = mean.new_empty(len(mean) + len(deviations), mean.shape[1])
    tensors = [_bits(each, len(mean)) for each in (mean, deviations, out)]
    _join(*tensors, _shift(mean), relu)
    return out


def _bits(x: Tensor, batch: int) -> Bits:
    bits = x.contiguous().view(torch.int32 if x.dtype == torch.float32 else torch.int16).numpy()
    return bits.view(np.uint32 if x.dtype == torch.float32 else np.uint16).reshape(-1, batch, x.shape[1])


def _shift(x: Tensor) -> int:
    return 0 if x.dtype == torch.float32 else 16


@njit
def _load(row: Bits, shift: int, bits: Bits) -> None:
    """Read a row as bits of float32."""
    for column in range(bits.size):
        bits[column] = np.uint32(row[column]) << np.uint32(shift)


@njit
def _store(bits: Bits, shift: int, row: Bits) -> None:
    """Write bits of float32 to a row, rounded to the nearest, of two the even one."""
    if shift == 0:
        for column in range(bits.size):
            row[column] = bits[column]
    else:
        for column in range(bits.size):
            odd = (bits[column] >> np.uint32(16)) & np.uint32(1)
            row[column] = np.uint32(bits[column] + np.uint32(0x7FFF) + odd) >> np.uint32(16)


@njit
def _before_relu(gradient: Floats, out: Floats) -> None:
    for column in range(gradient.size):
        number = gradient[column]  # read in any case: with a branch for each number, a pass takes eight times as long
        gradient[column] = np.float32(0) if out[column] <= np.float32(0) else number


@njit
def _subtract(a: Floats, b: Floats, out: Floats) -> None:
    for column in range(out.size):
        out[column] = a[column] - b[column]


@njit(nogil=True)
def _split(x: Bits, out: Bits, total: Bits, rest: Bits, to_last: Bits, shift: int, gradient: bool) -> None:
    parts, batch, width = x.shape
    bits = np.empty((parts + 2, width), np.uint32)
    value = bits.view(np.float32)
    last, summed, other = value[parts - 1], value[parts], value[parts + 1]
    for k in range(batch):
        for column in range(width):
            summed[column] = np.float32(0)
        for p in range(parts):
            own = value[p]
            _load(x[p, k], shift, bits[p])
            if gradient:
                _load(out[p, k], shift, bits[parts + 1])
                _before_relu(own, other)
            for column in range(width):
                summed[column] += own[column]
        _store(bits[parts], shift, total[0, k])
        for column in range(width):
            summed[column] /= np.float32(parts)
        for p in range(parts - 1):
            own = value[p]
            if gradient:
                _subtract(own, last, other)
                _store(bits[parts + 1], shift, to_last[p, k])
            _subtract(own, summed, own)
            _store(bits[p], shift, rest[p, k])


@njit(nogil=True)
def _join(mean: Bits, deviations: Bits, out: Bits, shift: int, relu: bool) -> None:
    parts, batch, width = out.shape
    bits = np.empty((3, width), np.uint32)
    value = bits.view(np.float32)
    middle, own, left = value[0], value[1], value[2]
    for k in range(batch):
        _load(mean[0, k], shift, bits[0])
        for column in range(width):
            left[column] = np.float32(0)
        for p in range(parts):
            if p < parts - 1:
                _load(deviations[p, k], shift, bits[1])
                for column in range(width):
                    left[column] -= own[column]
                    own[column] += middle[column]
            else:
                for column in range(width):
                    own[column] = left[column] + middle[column]
            if relu:
                for column in range(width):
                    own[column] = np.float32(0) if own[column] < np.float32(0) else own[column]
            _store(bits[1], shift, out[p, k])
