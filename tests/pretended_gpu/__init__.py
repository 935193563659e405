"""A CUDA device that is not there: memory of the host that PyTorch takes for `cuda:0`, with streams, events and graphs.

    with pretend() as gpu:
        ...  # code that asks for torch.device("cuda")
    assert gpu.problems == []

The code runs as it is and computes real values. Looked at, and said in `problems` or by an error as CUDA's:

* tensors of host and device in one operation, `numpy()` of a tensor of the device
* what waits for the device (`World.counts`), which is refused while a stream captures
* graphs: a capture leaves no trace; a replay repeats the operations with the same memory and Python numbers
* races of streams and host threads, by vector clocks over bytes
* memory given back while another stream may still use it, without `record_stream`
* pinned memory that the host touches while a copy may be under way

An operator of `torch.library.custom_op` is one kernel, done by its implementation for the CPU. What this cannot see:
time, the driver, cuBLAS and its sums, the allocator of PyTorch, errors of inference mode (here it is `no_grad`).
"""

from __future__ import annotations

import gc
import queue
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import _lru_cache_wrapper, cache
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch
from torch import Tensor

import train.dqn.trainer  # noqa: F401  with all that has a cache
from tests.pretended_gpu import graphs, streams, threads
from tests.pretended_gpu.memory import memory_of
from tests.pretended_gpu.operations import Mode, download
from tests.pretended_gpu.tensors import DeviceTensor
from tests.pretended_gpu.world import CPU, DEVICE, World, begin_world, world
from train.dqn import self_check
from train.dqn.network.cuda_graphs import GraphedSteps

__all__ = ["MEMORY", "NAME", "World", "pretend"]

NAME = "a GPU that is not there"
MEMORY = 48 * 10**9  # bytes, all of them free
CAPABILITY = (9, 0)

_Generator = torch.Generator
_host_to, _numpy, _host_tolist = Tensor.to, Tensor.numpy, Tensor.tolist
_group = torch._C._group_tensors_by_device_and_dtype


class _DeviceGenerator:
    """torch.Generator: its numbers are those of the host."""

    def __new__(cls, device: Any = None) -> Any:
        return _Generator()


def _inference(self: Any) -> None:
    self.previous = torch.is_grad_enabled()
    torch.set_grad_enabled(not self.mode and self.previous)


def _end_inference(self: Any, *_: Any) -> None:
    torch.set_grad_enabled(self.previous)


def _to(self: Tensor, *args: Any, copy: bool = False, **kwargs: Any) -> Tensor:
    """Tensor.to."""
    if args and isinstance(args[0], Tensor):
        args = (args[0].device, args[0].dtype, *args[1:])
    device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
    type_ = self.device.type if device is None else device.type
    dtype = dtype or self.dtype
    if isinstance(self, DeviceTensor) and type_ == "cpu":
        return download(self, dtype, non_blocking)
    if type_ == "cpu":
        return _host_to(self, *args, copy=copy, **kwargs)
    if not isinstance(self, DeviceTensor):  # by an operator, so that a mode sees it
        return torch.ops.aten._to_copy.default(self, dtype=dtype, device=DEVICE, non_blocking=non_blocking)
    return _host_to(self, dtype, non_blocking, copy)


def _as_numpy(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    if isinstance(self, DeviceTensor):
        raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()")
    with world().lock:
        memory = memory_of(self)
        if memory is not None:
            memory.host_touches()
    return _numpy(self, *args, **kwargs)


def _made(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """torch.tensor and torch.as_tensor: on the host, and then moved."""

    def make(*args: Any, device: Any = None, **kwargs: Any) -> Tensor:
        made = function(*args, **kwargs)
        return made if device is None else made.to(device)

    return make


def _tolist(self: Tensor) -> Any:
    return _host_tolist(self.cpu())


def _grouped(lists: list[list[Tensor]], with_indices: bool = False) -> Any:
    """By the devices that tensors say they are on."""
    groups = _group(lists, with_indices)
    return {(members[0][0].device, dtype): (members, at) for (_, dtype), (members, at) in groups.items()}


_PROPERTIES = SimpleNamespace(
    name=NAME, total_memory=MEMORY, major=CAPABILITY[0], minor=CAPABILITY[1], multi_processor_count=142
)
_CUDA: dict[str, Any] = {
    "Stream": streams.Stream,
    "Event": streams.Event,
    "current_stream": streams.current_stream,
    "default_stream": streams.default_stream,
    "set_stream": streams.set_stream,
    "synchronize": streams.synchronize,
    "CUDAGraph": graphs.Graph,
    "graph_pool_handle": graphs.graph_pool_handle,
    "_lazy_init": lambda: None,
    "is_initialized": lambda: True,
    "is_available": lambda: True,
    "device_count": lambda: 1,
    "current_device": lambda: 0,
    "set_device": lambda device: None,
    "get_device_name": lambda device=None: NAME,
    "get_device_capability": lambda device=None: CAPABILITY,
    "get_device_properties": lambda device=None: _PROPERTIES,
    "mem_get_info": lambda device=None: (MEMORY, MEMORY),
    "empty_cache": lambda: None,
    "is_bf16_supported": lambda including_emulation=True: True,
    "is_current_stream_capturing": lambda: streams.current_stream().capture is not None,
}


def _patches() -> Iterator[Any]:
    for name, value in _CUDA.items():
        yield mock.patch.object(torch.cuda, name, value)
    # Operations are slow here: fewer updates in a graph, and fewer games and updates in a self-check.
    yield mock.patch.object(GraphedSteps.__init__, "__defaults__", ("updates", (4, 1)))
    yield mock.patch.multiple(self_check, DECISIONS=24, UPDATES=4, _GAMES=8)
    yield mock.patch.object(torch._C, "_host_emptyCache", lambda: None, create=True)
    yield mock.patch.object(torch.cuda.graph, "default_capture_stream", None)
    yield mock.patch.object(torch.version, "cuda", "13.0")
    for name in ("tensor", "as_tensor"):
        yield mock.patch.object(torch, name, _made(getattr(torch, name)))
    yield mock.patch.object(torch, "Generator", _DeviceGenerator)
    yield mock.patch.multiple(torch.inference_mode, __enter__=_inference, __exit__=_end_inference)
    moves = {"to": _to, "cuda": lambda self, *_, **__: _to(self, DEVICE), "cpu": lambda self, *_, **__: _to(self, CPU)}
    yield mock.patch.multiple(Tensor, numpy=_as_numpy, tolist=_tolist, **moves)
    yield mock.patch.object(torch._C, "_group_tensors_by_device_and_dtype", _grouped)
    yield mock.patch.multiple(threading.Thread, start=threads.start, run=threads.run, join=threads.join_thread)
    yield mock.patch.object(threading, "Condition", threads.Condition)
    yield mock.patch.object(queue, "SimpleQueue", threads.SimpleQueue)
    # Also so that tensors of this GPU stay in no cache.
    for module in [module for name, module in sys.modules.items() if name.startswith("train.")]:
        for name, value in list(vars(module).items()):
            if isinstance(value, _lru_cache_wrapper):
                yield mock.patch.object(module, name, threads.Cached(value))


@contextmanager
def pretend() -> Iterator[World]:
    """Until the end of the context this process has a GPU, in this thread and in those that it starts."""
    with ExitStack() as stack:
        for patch in _patches():
            stack.enter_context(patch)
        overwrites = torch.__future__.get_overwrite_module_params_on_conversion()
        stack.callback(torch.__future__.set_overwrite_module_params_on_conversion, overwrites)
        torch.__future__.set_overwrite_module_params_on_conversion(True)
        stack.callback(torch._C._set_only_lift_cpu_tensors, False)
        torch._C._set_only_lift_cpu_tensors(True)
        stack.callback(streams.set_stream, streams.DEFAULT)
        here = begin_world()
        with Mode():
            yield here
            streams.synchronize()  # before what is cached is given back
    _freeze()


@cache
def _freeze() -> None:
    """Have later garbage collections, of which a self-check makes several, pass over what PyTorch has imported."""
    gc.collect()
    gc.freeze()
