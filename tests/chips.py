"""Other kinds of CPU, emulated: a test chooses the number format and kernel, whatever the CPU of this machine has.

One of them computes on this CPU what other devices would: all by PyTorch's own operations.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest


class Chip(NamedTuple):
    """A kind of CPU: what `learner.precision=auto` and players mean there, and the kernel of float32.

    Without oneDNN in this PyTorch its own kernel takes its place.
    """

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
    """Until its end this process takes its CPU for such a chip; PyTorch computes bfloat16 in software if it must."""
    import torch  # here, so that a suite that asks for no chip does not wait for it

    from busso.train.dqn.network import matmul

    chip = CHIPS[name]
    one_dnn = chip.one_dnn and matmul.one_dnn_available()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.cpu, "_is_avx512_bf16_supported", lambda: chip.format == "bfloat16")
        patch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: chip.format == "bfloat16")
        patch.setattr(matmul, "prefers_one_dnn", lambda: one_dnn)
        patch.setattr(matmul, "OWN_CODE_ON", "cpu" if chip.own_code else "no device")
        yield chip
