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
    integers = torch.int32 if x.dtype == torch.float32 else torch.int16
    bits: Bits = x.contiguous().view(integers).numpy().view(f"u{x.itemsize}")
    return bits.reshape(-1, batch, x.shape[1])


def _shift(x: Tensor) -> int:
    return 32 - 8 * x.itemsize


@njit
def _number(word: np.uint32, shift: int) -> np.float32:
    return np.uint32(np.uint32(word) << np.uint32(shift)).view(np.float32)


@njit
def _word(number: np.float32, shift: int) -> np.uint32:
    """Return a float32's bits, the upper 16 rounded to the nearest, of two the even one."""
    bits = np.float32(number).view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    return bits if shift == 0 else np.uint32(np.uint32(bits + np.uint32(0x7FFF) + odd) >> np.uint32(16))


@njit(nogil=True)
def _split(  # noqa: C901 - one pass over memory
    x: Bits, out: Bits, total: Bits, rest: Bits, to_last: Bits, shift: int, gradient: bool
) -> None:
    parts, batch, width = x.shape
    value, mean = np.empty((parts, width), np.float32), np.empty(width, np.float32)
    last = value[parts - 1]
    for k in range(batch):
        for column in range(width):
            mean[column] = np.float32(0)
        for p in range(parts):
            own, of_own, of_out = value[p], x[p, k], out[p, k]
            for column in range(width):
                number = _number(of_own[column], shift)
                if gradient and _number(of_out[column], shift) <= np.float32(0):
                    number = np.float32(0)
                own[column] = number
                mean[column] += number
        of_total = total[0, k]
        for column in range(width):
            of_total[column] = _word(mean[column], shift)
            mean[column] /= np.float32(parts)
        for p in range(parts - 1):
            own, of_rest, of_last = value[p], rest[p, k], to_last[p, k]
            for column in range(width):
                of_rest[column] = _word(own[column] - mean[column], shift)
            if gradient:
                for column in range(width):
                    of_last[column] = _word(own[column] - last[column], shift)


@njit(nogil=True)
def _join(mean: Bits, deviations: Bits, out: Bits, shift: int, relu: bool) -> None:
    parts, batch, width = out.shape
    left = np.empty(width, np.float32)
    least = np.float32(0) if relu else np.float32(-np.inf)
    for k in range(batch):
        middle, of_last = mean[0, k], out[parts - 1, k]
        for column in range(width):
            left[column] = _number(middle[column], shift)
        for p in range(parts - 1):
            own, of_own = deviations[p, k], out[p, k]
            for column in range(width):
                number = _number(own[column], shift)
                left[column] -= number
                number += _number(middle[column], shift)
                of_own[column] = _word(least if number < least else number, shift)
        for column in range(width):
            of_last[column] = _word(least if left[column] < least else left[column], shift)
