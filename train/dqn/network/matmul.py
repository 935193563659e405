"""The matrix products of a network, each on the fastest kernel known for its tensors."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor


def one_dnn_available() -> bool:
    """Whether this build of PyTorch has the oneDNN linear operator."""
    return torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@cache
def prefers_one_dnn() -> bool:
    """Whether float32 products go through oneDNN on this CPU: where it was measured to be faster than MKL, on AMD's.

    `python -m tests.bench kernels` measures it, docs/performance.md has the figures. A run does not: two starts on
    one machine could then choose differently, and would not compute the same bits.
    """
    cpu = Path("/proc/cpuinfo")
    return one_dnn_available() and cpu.exists() and "AuthenticAMD" in cpu.read_text()


@cache
def _one_dnn_knows_bfloat16() -> bool:
    return one_dnn_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _by_one_dnn(x: Tensor) -> bool:
    if x.device.type != "cpu":
        return False
    return prefers_one_dnn() if x.dtype == torch.float32 else _one_dnn_knows_bfloat16()


def linear(x: Tensor, weight: Tensor, bias: Tensor, relu: bool = False) -> Tensor:
    """`x @ weight.T + bias`, `[batch, in]` -> `[batch, out]`, all of one number format; with `relu`, not below 0."""
    if _by_one_dnn(x):  # the ReLU while a result is still in a register
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "relu" if relu else "none", [], "")
        return out
    out = F.linear(x, weight, bias)
    return out.relu_() if relu else out


def multiply(a: Tensor, b: Tensor) -> Tensor:
    """The matrix product `a @ b`."""
    if a.dtype == torch.float32 and _by_one_dnn(a):
        out: Tensor = torch.ops.mkldnn._linear_pointwise(a, b.t(), None, "none", [], "")
        return out
    return torch.mm(a, b)


def multiply_into(out: Tensor, a: Tensor, b: Tensor) -> None:
    """Write the matrix product `a @ b` to `out`."""
    if a.dtype == torch.float32 and _by_one_dnn(a):
        out.copy_(multiply(a, b))
    else:
        torch.mm(a, b, out=out)
