"""Tensors that say they are on `cuda:0`; their numbers lie in the memory of the host.

Below Python they are tensors of the CPU: a PyTorch without CUDA has no autograd for others.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tests.pretended_gpu.memory import memory_of
from tests.pretended_gpu.streams import Stream
from tests.pretended_gpu.world import DEVICE, world


class DeviceTensor(torch.Tensor):
    """A tensor of the device; `inner` has its numbers. Operators come to `operations.dispatch` by a mode."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> DeviceTensor:
        new: DeviceTensor = Tensor._make_wrapper_subclass(
            cls,
            inner.size(),
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            layout=inner.layout,
            device=inner.device,
            requires_grad=False,
        )
        new.inner = inner
        return new

    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @classmethod
    def __torch_dispatch__(cls, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise RuntimeError(f"{operator}: a tensor of the pretended GPU outlived it, or its thread is older")

    device = property(lambda self: DEVICE)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)

    @property
    def data(self) -> Tensor:
        return DeviceTensor(self.inner)

    @data.setter
    def data(self, value: DeviceTensor) -> None:
        if value.shape != self.shape or value.dtype != self.dtype:
            raise RuntimeError("the pretended GPU gives a parameter only data of its own shape and type")
        self.inner = value.inner

    def get_device(self) -> int:
        return DEVICE.index

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def record_stream(self, stream: Stream) -> None:  # type: ignore[override]
        with world().lock:
            memory = memory_of(self.inner)
            if memory is not None:
                memory.recorded.add(stream.name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        new: Tensor = self.detach().clone()
        if isinstance(self, torch.nn.Parameter):
            new = torch.nn.Parameter(new, self.requires_grad)
        memo[id(self)] = new
        return new

    def __repr__(self, **_: Any) -> str:  # type: ignore[override]
        return f"{self.inner!r} on {DEVICE}"
