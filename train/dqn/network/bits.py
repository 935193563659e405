"""Unpacking observations on the device that multiplies them. Kept apart so that games never import torch."""

from __future__ import annotations

import torch
from torch import Tensor

from train.dqn.kernels.nvrtc import launch
from train.dqn.kernels.operators import operator

FORMATS = {torch.float32: "float", torch.bfloat16: "bf16", torch.float16: "fp16"}  # their names in kernels.cu


def _see(words: Tensor, places: Tensor, parts: int, dtype: torch.dtype) -> Tensor:
    out = words.new_empty(len(words) * parts, len(places) // parts, dtype=dtype)
    size = out.numel() // 8
    launch(f"views_{FORMATS[dtype]}", size, words.contiguous(), places, out, len(places), words.shape[1])
    return out


@operator("see(Tensor words, Tensor places, int parts, ScalarType dtype) -> Tensor", _see)
def see(words: Tensor, places: Tensor, parts: int, dtype: torch.dtype) -> Tensor:
    """Packed observations -> what the first weight is multiplied with: 0 and 1, `[batch * parts, rows]`.

    `places`, int32 `[parts * rows]`, says which bit each part has in each row; -1 is none.
    """
    bits = words[:, places.clamp(min=0).long() >> 6] >> (places & 63) & 1
    return bits.masked_fill(places < 0, 0).to(dtype).view(len(words) * parts, len(places) // parts)
