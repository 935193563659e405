"""Every operator of PyTorch passes here: it is done on the memory of the host, and looked at as a GPU's would be."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from tests.pretended_gpu.graphs import Work
from tests.pretended_gpu.memory import allocated, extent, is_pinned, memory_of
from tests.pretended_gpu.streams import Stream, current_stream
from tests.pretended_gpu.tensors import DeviceTensor
from tests.pretended_gpu.world import CPU, world

# What the host has to wait for, since it reads a value or a size.
_READ_BACK = {"_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero", "_unique2", "bincount"}
_INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}
_RANDOM = {
    "rand",
    "randn",
    "randint",
    "rand_like",
    "randn_like",
    "uniform_",
    "normal_",
    "bernoulli_",
    "random_",
    "exponential_",
}
_GATHERS = {"index", "index_select", "embedding", "gather", "take"}  # read as much of the first operand as they write
_SCATTERS = {
    "index_put_",
    "index_copy_",
    "scatter_",
    "_index_put_impl_",
}  # write as much of it as they read of the last
_NO_WORK = ("empty", "new_empty", "resize_", "set_")


class Mode(TorchDispatchMode):
    """Every operator of a thread, until it ends."""

    def __torch_dispatch__(self, operator: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with world().lock:
            return dispatch(operator, args, kwargs or {})


def dispatch(operator: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Do an operator on the host or on the device."""
    name = operator.overloadpacket.__name__
    tensors = _tensors((args, list(kwargs.values())))
    operands = [each for each in tensors if isinstance(each, DeviceTensor)]
    wanted = kwargs.get("device")
    if not operands and (wanted is None or torch.device(wanted).type == "cpu"):
        return _on_host(operator, name, tensors, args, kwargs)
    stream = current_stream()
    stream.asked()
    if name == "is_pinned":
        return False
    if name == "_to_copy" and not operands:
        return upload(args[0], kwargs.get("dtype"), kwargs.get("non_blocking", False))
    if name == "copy_" and len(operands) == 1:
        _copy(args[0], args[1], args[2] if len(args) > 2 else kwargs.get("non_blocking", False), stream)
        return args[0]
    return _on_device(operator, name, tensors, args, kwargs, stream)


def _on_host(operator: Any, name: str, tensors: list[Tensor], args: Any, kwargs: dict[str, Any]) -> Any:
    if name == "is_pinned":
        return is_pinned(args[0])
    if name in ("pin_memory", "_pin_memory"):
        result = args[0].clone()
        allocated(result, pinned=True)
        return result
    if not _is_view(operator):
        for tensor in tensors:
            memory = memory_of(tensor)
            if memory is not None:
                memory.host_touches()
    pins = kwargs.pop("pin_memory", False)
    result = operator(*args, **kwargs)
    if pins:
        allocated(result, pinned=True)
    return result


def _on_device(
    operator: Any, name: str, tensors: list[Tensor], args: Any, kwargs: dict[str, Any], stream: Stream
) -> Any:
    _check_devices(name, tensors)
    if _reads_back(name, args):
        _wait(stream, name)
    operands = {id(each.inner): each for each in tensors if isinstance(each, DeviceTensor)}
    written = [each.inner for each in _written(operator, args, kwargs) if isinstance(each, DeviceTensor)]
    if stream.capture is not None:
        stream.capture.expects(name, name in _RANDOM, kwargs.get("generator"), written)
    plain = {key: CPU if key == "device" else value for key, value in kwargs.items() if key != "pin_memory"}
    call = partial(operator, *_mapped(_inner, args), **{key: _mapped(_inner, value) for key, value in plain.items()})
    result = call()

    storages = {each.inner.untyped_storage()._cdata for each in operands.values()}
    fresh = [each for each in _tensors(result) if each.untyped_storage()._cdata not in storages]
    for each in fresh:
        allocated(each)
    if (fresh or written or name in _READ_BACK) and not name.startswith(_NO_WORK):
        reads = [each.inner for each in operands.values()]
        count = _counted(str(operator), name, reads, written, fresh)
        _do(
            Work(name, partial(_again, call, result, {id(each) for each in fresh}), reads, written + fresh, count),
            stream,
        )
    wrappers = operands | {id(each): DeviceTensor(each) for each in _tensors(result) if id(each) not in operands}
    return _mapped(lambda leaf: wrappers.get(id(leaf), leaf), result)


def _again(call: Callable[[], Any], result: Any, fresh: set[int]) -> None:
    """Do an operator again, with its results where they were before."""
    for old, new in zip(_tensors(result), _tensors(call()), strict=True):
        if id(old) in fresh:
            old.copy_(new)


def _do(work: Work, stream: Stream) -> None:
    """What has just been done is the newest operation of the stream, or of the graph that it captures."""
    if stream.capture is not None:
        stream.capture.captures(work)
        return
    stream.advance()
    world().counts["launches"] += 1
    work.note(stream)


def _counted(
    operator: str, name: str, reads: list[Tensor], written: list[Tensor], fresh: list[Tensor]
) -> Callable[[], None]:
    results = sum(map(_bytes, fresh)) + sum(map(_bytes, written))
    operands = [_bytes(each) for each in reads]
    if name in _GATHERS and operands:
        operands[0] = min(operands[0], results)
    if name in _SCATTERS and operands:
        operands[0] = results = min(operands[0], operands[-1])
    total = sum(operands) + results

    def count() -> None:
        here = world()
        here.counts["kernels"] += 1
        here.counts["kernel bytes"] += total
        here.operations[operator] += 1

    return count


def upload(source: Tensor, dtype: torch.dtype | None, non_blocking: bool) -> Tensor:
    """A copy on the device of a tensor of the host."""
    target = torch.empty_like(source, dtype=dtype)
    allocated(target)
    new = DeviceTensor(target)
    _copy(new, source, non_blocking, current_stream())
    return new


def download(source: DeviceTensor, dtype: torch.dtype | None, non_blocking: bool) -> Tensor:
    """A copy on the host of a tensor of the device."""
    with world().lock, _disable_current_modes():
        current_stream().asked()
        target = torch.empty_like(source.inner, dtype=dtype)
        _copy(target, source, non_blocking, current_stream())
    return target


def _copy(target: Tensor, source: Tensor, non_blocking: bool, stream: Stream) -> None:
    """Between host and device. Only a copy from or to pinned memory can go on by itself."""
    up = isinstance(target, DeviceTensor)
    there, here = _inner(target), _inner(source)
    if not up and non_blocking and not is_pinned(there):
        world().problem("a copy to memory that is not pinned, which is not waited for")
    if stream.capture is not None:
        stream.capture.expects("copy", False, None, [there])
    waits = not (non_blocking and is_pinned(here if up else there))
    what = "upload" if up else "download"

    def count() -> None:
        world().counts[f"{what}s"] += 1
        world().counts[f"{what}ed bytes"] += _bytes(there)

    if waits:
        _wait(stream, f"{what} of usual memory")
    there.copy_(here)
    _do(Work(what, lambda: there.copy_(here), [here], [there], count), stream)
    if waits:
        stream.host_waits(what)


def _wait(stream: Stream, what: str) -> None:
    stream.host_waits(what)
    world().counts["waits"] += 1
    world().operations[f"wait: {what}"] += 1


def _check_devices(name: str, tensors: Iterable[Tensor]) -> None:
    for each in tensors:
        if not isinstance(each, DeviceTensor) and each.dim() > 0:
            if name not in _INDEXING:
                raise RuntimeError(f"{name}: Expected all tensors to be on the same device, but found cuda:0 and cpu")
            world().problem(f"{name} by an index of the host's, which is copied to the device and waited for")


def _reads_back(name: str, args: Any) -> bool:
    masks = name in _INDEXING and any(each.dtype == torch.bool for each in _tensors(args[1]))
    return masks or name in _READ_BACK


def _written(operator: Any, args: Any, kwargs: dict[str, Any]) -> list[Tensor]:
    """The arguments that an operator writes, by its schema."""
    return [
        leaf for at, name in _writes(operator) for leaf in _tensors(args[at] if at < len(args) else kwargs.get(name))
    ]


@cache
def _writes(operator: Any) -> list[tuple[int, str]]:
    arguments = enumerate(operator._schema.arguments)
    return [(k, each.name) for k, each in arguments if each.alias_info is not None and each.alias_info.is_write]


@cache
def _is_view(operator: Any) -> bool:
    return any(each.alias_info is not None and not each.alias_info.is_write for each in operator._schema.returns)


def _tensors(tree: Any) -> list[Tensor]:
    if isinstance(tree, Tensor):
        return [tree]
    return [leaf for part in tree for leaf in _tensors(part)] if isinstance(tree, list | tuple) else []


def _mapped(function: Callable[[Any], Any], tree: Any) -> Any:
    """The leaves of lists and tuples through a function."""
    return type(tree)([_mapped(function, each) for each in tree]) if type(tree) in (list, tuple) else function(tree)


def _inner(leaf: Any) -> Any:
    return leaf.inner if isinstance(leaf, DeviceTensor) else leaf


def _bytes(tensor: Tensor) -> int:
    return min(tensor.numel() * tensor.element_size(), extent(tensor))
