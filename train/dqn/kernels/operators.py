"""PyTorch operators with a kernel of their own on a GPU, and the one switch for all of them."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

from train.dqn.kernels.nvrtc import kernels

log = logging.getLogger("train")

P = ParamSpec("P")
R = TypeVar("R")

_LIBRARY = torch.library.Library("busso", "DEF")
_switched_off = False
BY_KERNEL: dict[str, Callable[..., object]] = {}  # what operators do on a GPU, by name


def switch_off(reason: object) -> None:
    """From now on this process uses PyTorch's own operations. What a CUDA graph holds stays in it: capture anew."""
    global _switched_off  # noqa: PLW0603
    if not _switched_off:
        why = str(reason).partition("\n")[0]
        log.warning("busso's own CUDA kernels are not used (%s): updates take more operations", why)
    _switched_off = True


def by_kernels(device: torch.device) -> bool:
    """Whether operations of tensors on this device are by kernels."""
    return device.type == "cuda" and not _switched_off


def operator(schema: str, kernel: Callable[P, R]) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Make a function on tensors an operator of this schema, for which `kernel` launches one on a GPU.

    The function is what it computes: on a CPU, and where kernels are switched off, that runs. The first argument is a
    tensor. Nothing is recorded for autograd.
    """
    name = schema.partition("(")[0]

    def define(plain: Callable[P, R]) -> Callable[P, R]:
        def by_kernel(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                kernels(args[0].device)  # type: ignore[attr-defined]
            except (RuntimeError, OSError) as error:
                switch_off(error)
                return plain(*args, **kwargs)
            return kernel(*args, **kwargs)

        BY_KERNEL[name] = kernel
        _LIBRARY.define(schema)
        _LIBRARY.impl(name, plain, "CompositeExplicitAutograd")
        _LIBRARY.impl(name, by_kernel, "CUDA")
        one_operation: Callable[P, R] = getattr(torch.ops.busso, name)

        @wraps(plain)
        def either(*args: P.args, **kwargs: P.kwargs) -> R:
            use = by_kernels(args[0].device)  # type: ignore[attr-defined]
            return one_operation(*args, **kwargs) if use else plain(*args, **kwargs)

        return either

    return define
