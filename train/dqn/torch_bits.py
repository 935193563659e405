"""Unpacking observations on the device that multiplies them. Kept apart so that games never import torch."""

import torch
from torch import Tensor

from cards.bits import WORD, unpack


def unpack_tensor(words: Tensor, bits: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Packed rows `[n, words]` (int64) -> `[n, bits]` of 0 and 1 in `dtype`, on the device of `words`."""
    if words.device.type == "cpu":
        return _unpack_cpu(words, bits, dtype)
    shifts = torch.arange(WORD, device=words.device)
    expanded = (words.unsqueeze(-1) >> shifts) & 1
    return expanded.flatten(1)[:, :bits].to(dtype)


def _unpack_cpu(words: Tensor, bits: int, dtype: torch.dtype) -> Tensor:
    # The compiled loop is ten times faster than shifting tensors. NumPy knows no bfloat16, so half-precision
    # outputs are written as float32 and rounded: 0 and 1 are exact in every dtype.
    ones = unpack(words.numpy().view("u8"), bits)
    return torch.from_numpy(ones).to(dtype)
