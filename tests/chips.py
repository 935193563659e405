"""Emulated kinds of CPU: tests choose number format and kernel independently of the machine's CPU.

One of them computes what other devices would, by PyTorch's own operations only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest


class Chip(NamedTuple):
    """Kind of CPU: its meaning of `learner.precision=auto`, and its float32 kernel (PyTorch's own without oneDNN)."""

    format: str
    one_dnn: bool
    own_code: bool = True


CHIPS = {
    "bfloat16": Chip("bfloat16", True),  # AVX512-BF16 or AMX
    "float32_one_dnn": Chip("float32", True),
    "float32_pytorch": Chip("float32", False),
    "other_device": Chip("float32", False, own_code=False),
}


@contextmanager
def emulated_chip(name: str) -> Iterator[Chip]:
    """Make this process take its CPU for such a chip; PyTorch emulates bfloat16 in software if necessary."""
    import torch  # deferred: tests without chips do not need it

    from busso.train.network import matmul

    chip = CHIPS[name]
    one_dnn = chip.one_dnn and matmul.one_dnn_available()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: chip.format == "bfloat16")
        patch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: chip.format == "bfloat16")
        patch.setattr(matmul, "prefers_one_dnn", lambda: one_dnn)
        patch.setattr(matmul, "OWN_CODE_ON", "cpu" if chip.own_code else "no device")
        yield chip
