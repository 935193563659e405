"""Unpacking observations on the device that multiplies them. Kept apart so that games never import torch."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from cards.compiled.bits import unpack

_ONE_AS_BFLOAT16 = 0x3F80  # NumPy knows no bfloat16: a one is written as its bits


def unpack_tensor(words: Tensor, bits: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Packed rows `[n, words]` (int64) -> `[n, bits]` of 0 and 1 in `dtype`, on the device of `words`."""
    if words.device.type == "cpu":
        return _unpack_cpu(words, bits, dtype)
    # Eight at a time, from a table: two operations, the second of which writes the result where it is wanted.
    return F.embedding(words.view(torch.uint8).int(), _bits_of_bytes(dtype, words.device)).flatten(1)[:, :bits]


@cache
def _bits_of_bytes(dtype: torch.dtype, device: torch.device) -> Tensor:
    """`[256, 8]`: the bits of each byte, the lowest first."""
    with torch.inference_mode(False):  # it is everybody's
        table = (torch.arange(256, device=device).unsqueeze(1) >> torch.arange(8, device=device) & 1).to(dtype)
    if device.type == "cuda":  # other threads, whose streams do not wait for this one's, are given it from now on
        torch.cuda.current_stream(device).synchronize()
    return table


def _unpack_cpu(words: Tensor, bits: int, dtype: torch.dtype) -> Tensor:
    packed = words.numpy().view("u8")
    if dtype != torch.bfloat16:
        return torch.from_numpy(unpack(packed, bits)).to(dtype)
    out = unpack(packed, bits, np.empty((len(packed), bits), np.uint16))
    out *= np.uint16(_ONE_AS_BFLOAT16)
    return torch.from_numpy(out).view(torch.bfloat16)
