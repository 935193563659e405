"""Unpacking observations on the device that multiplies them. Kept apart so that games never import torch."""

from __future__ import annotations

from functools import cache

import torch
import torch.nn.functional as F
from torch import Tensor


def unpack_tensor(words: Tensor, bits: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Packed rows `[n, words]` (int64) -> `[n, bits]` of 0 and 1 in `dtype`, on the device of `words`."""
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
