"""Linear layers and their derivatives, by the fastest known matrix product for their tensors.

On a CPU, oneDNN's operator adds the bias and applies the ReLU in the same pass. PyTorch's own functions take 1.05 to
1.13 times as long for a player's forward pass of 1,024 rows, and 1.02 to 1.08 times for an update (AMD EPYC, one
thread, the recipes of conf/, float32 and bfloat16). The operator is private to PyTorch, which has no public function
that applies a ReLU in the same pass. Other devices use PyTorch's functions.
"""

import os
from functools import cache
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from busso.base.system import keep_freed_memory
from busso.train.network.deviations import join, split

forked = [False]  # True if this process was forked after this module was imported
OWN_CODE_ON = "cpu"  # device type of this project's own code; all others use PyTorch's


def _begin_fork() -> None:
    forked[0] = True
    torch.set_num_threads(1)


os.register_at_fork(after_in_child=_begin_fork)


keep_freed_memory()


def by_own_code(x: Tensor) -> bool:
    """Return whether this project's CPU code computes with a tensor; exports can trace PyTorch's functions only."""
    return x.device.type == OWN_CODE_ON and not torch.compiler.is_exporting()


def one_dnn_available() -> bool:
    """Return whether this build of PyTorch has the oneDNN linear operator."""
    built_with = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return bool(built_with) and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@cache
def prefers_one_dnn() -> bool:
    """Return whether float32 products use oneDNN on this CPU: on AMD's, where it measured faster than MKL.

    `python -m tests.bench kernels` measures it. A run does not, because two starts on one machine could then choose
    differently and compute different bits.
    """
    cpu = Path("/proc/cpuinfo")
    return one_dnn_available() and cpu.exists() and "AuthenticAMD" in cpu.read_text()


@cache
def _one_dnn_knows_bfloat16() -> bool:
    return one_dnn_available() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # private: no public call says so


def _by_one_dnn(x: Tensor) -> bool:
    return by_own_code(x) and (prefers_one_dnn() if x.dtype == torch.float32 else _one_dnn_knows_bfloat16())


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool = False) -> Tensor:
    """Return `x @ weight.T + bias` in the format of `x`, `[batch, in]` -> `[batch, out]`; with `relu`, after a ReLU."""
    weight, bias = weight.to(x.dtype), None if bias is None else bias.to(x.dtype)
    if by_own_code(x) and torch.is_grad_enabled():  # else calling an autograd function takes longer
        result: Tensor = _Linear.apply(x, weight, bias, relu)  # type: ignore[no-untyped-call]
        return result
    return _forward(x, weight, bias, relu)


def _forward(x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
    if _by_one_dnn(x):  # applies the ReLU while a result is in a register
        out: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "relu" if relu else "none", [], "")
        return out
    out = F.linear(x, weight, bias)
    return out.relu_() if relu else out


class _Linear(torch.autograd.Function):
    """`_forward` with its derivatives; PyTorch computes the weight gradient, as oneDNN copies transposed tensors."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, relu: bool) -> Tensor:
        out = _forward(x, weight, bias, relu)
        ctx.save_for_backward(x, weight, out if relu else None)
        return out

    @staticmethod
    def backward(ctx: Any, of_out: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, out = ctx.saved_tensors
        of_sum = of_out if out is None else before_relu(of_out, out)
        of_x, _, of_bias, _ = ctx.needs_input_grad
        return (
            _forward(of_sum, weight.t(), None, relu=False) if of_x else None,
            torch.mm(of_sum.t(), x),
            of_sum.sum(0) if of_bias else None,
            None,
        )


def sum_of_parts(x: Tensor, parts: int) -> Tensor:
    """Return the sum over the parts, `[parts * batch, width]` -> `[batch, width]`."""
    blocks = x.view(parts, -1, x.shape[1])
    if torch.is_grad_enabled() or parts == 1 or not by_own_code(x):
        return blocks.sum(0)
    total = blocks[0] + blocks[1]  # PyTorch's sum of bfloat16 takes 2.6 times as long
    for block in blocks[2:]:
        total += block
    return total


def equivariant(x: Tensor, own: Tensor, bias: Tensor, mean: Tensor, parts: int) -> Tensor:
    """Return `relu(own x + mean (mean of x over the parts) + bias)` for each part, in the number format of `x`.

    `[parts * batch, in]` -> `[parts * batch, out]`, with all rows of a part contiguous.
    """
    if by_own_code(x) and torch.is_grad_enabled() and parts > 1:
        result: Tensor = _Equivariant.apply(x, own, bias, mean, parts)  # type: ignore[no-untyped-call]
        return result
    own, bias, mean = own.to(x.dtype), bias.to(x.dtype), mean.to(x.dtype) / parts
    out = linear(x, own, bias)
    out.view(parts, -1, out.shape[1]).add_(linear(sum_of_parts(x, parts), mean, None))
    return out.relu_()


class _Equivariant(torch.autograd.Function):
    """`equivariant` with its derivatives, by one matrix product per part.

    It multiplies the sum over the parts by `(own + mean) / parts`, and the deviations of all parts but the last from
    their mean by `own`. The last one's product is minus the sum of the others', as deviations add up to zero.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, own: Tensor, bias: Tensor, mean: Tensor, parts: int) -> Tensor:
        of_sum, own = ((own + mean) / parts).to(x.dtype), own.to(x.dtype)
        summed, deviations, _ = split(x, parts)
        mean = _forward(summed, of_sum, bias.to(x.dtype), relu=False)
        out = join(mean, _forward(deviations, own, None, relu=False), relu=True)
        ctx.parts = parts
        ctx.save_for_backward(summed, deviations, own, of_sum, out)
        return out

    @staticmethod
    def backward(ctx: Any, of_out: Tensor) -> tuple[Tensor | None, ...]:
        summed, deviations, own, of_sum, out = ctx.saved_tensors
        total, rest, to_last = split(of_out, ctx.parts, out)
        of_x = join(_forward(total, of_sum.t(), None, False), _forward(rest, own.t(), None, False), relu=False)
        of_mean = torch.mm(total.t(), summed).float() / ctx.parts
        return of_x, torch.mm(to_last.t(), deviations).float() + of_mean, total.sum(0).float(), of_mean, None


class OwnAndMean(torch.autograd.Function):
    """Row of each observation at `rows`, and the mean of its rows over the parts; both float32."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, parts: int) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(rows)
        ctx.parts, ctx.dtype = parts, x.dtype
        first, *others = x.view(parts, -1, x.shape[1])
        mean = first.to(torch.float32, copy=True)
        for block in others:
            mean += block
        return x.index_select(0, rows).float(), mean.div_(parts)

    @staticmethod
    def backward(ctx: Any, of_own: Tensor, of_mean: Tensor) -> tuple[Tensor | None, ...]:
        of_others = of_mean / ctx.parts
        of_x = of_others.to(ctx.dtype).repeat(ctx.parts, 1)
        of_x.index_copy_(0, *ctx.saved_tensors, of_others.add_(of_own).to(ctx.dtype))
        return of_x, None, None


def before_relu(of_out: Tensor, out: Tensor) -> Tensor:
    """Return the gradient where the ReLU's output is positive, 0 elsewhere."""
    result: Tensor = torch.ops.aten.threshold_backward(of_out, out, 0)
    return result
