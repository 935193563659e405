"""Compiles CUDA C at run time with the NVRTC of PyTorch's CUDA builds: no compiler, headers or packages are needed."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

SOURCE = Path(__file__).with_name("kernels.cu")
_THREADS = 256  # of a block


def image(nvrtc: ctypes.CDLL, chip: str) -> tuple[bytes, str]:
    """What the kernels are on a chip (`sm_89`), and the compiler's report. Raises RuntimeError with its errors."""
    options = (ctypes.c_char_p * 2)(f"--gpu-architecture={chip}".encode(), b"--ptxas-options=-v")
    program, size = ctypes.c_void_p(), ctypes.c_size_t()
    _check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), SOURCE.read_bytes(), SOURCE.name.encode(), 0, None, None))
    failed = nvrtc.nvrtcCompileProgram(program, len(options), options)
    _check(nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size)))
    report = ctypes.create_string_buffer(size.value)
    _check(nvrtc.nvrtcGetProgramLog(program, report))
    _check(failed, report.value.decode().strip())
    _check(nvrtc.nvrtcGetCUBINSize(program, ctypes.byref(size)))
    binary = ctypes.create_string_buffer(size.value)
    _check(nvrtc.nvrtcGetCUBIN(program, binary))
    return binary.raw, report.value.decode()


def _check(code: int, message: str = "") -> None:
    if code:
        raise RuntimeError(message or f"CUDA error {code}")


def _nvrtc() -> ctypes.CDLL:
    """Raises OSError where there is none, and RuntimeError where PyTorch is not for CUDA."""
    if torch.version.cuda is None:
        raise RuntimeError("this PyTorch is not built for CUDA")
    try:
        return ctypes.CDLL(f"libnvrtc.so.{torch.version.cuda.partition('.')[0]}")
    except OSError:  # where only PyTorch knows the folder; a library's symbols are also those of what it is linked to
        return ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libcaffe2_nvrtc.so"))


class Launcher:
    """The kernels on one device. Raises RuntimeError or OSError where they cannot be made."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        major, minor = torch.cuda.get_device_capability(device)
        binary, _ = image(_nvrtc(), f"sm_{major}{minor}")
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._context, self._module, number = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_int()
        _check(self._cuda.cuDeviceGet(ctypes.byref(number), device.index or 0))
        _check(self._cuda.cuDevicePrimaryCtxRetain(ctypes.byref(self._context), number))  # PyTorch's
        _check(self._cuda.cuCtxSetCurrent(self._context))
        _check(self._cuda.cuModuleLoadData(ctypes.byref(self._module), binary))
        self._functions: dict[str, ctypes.c_void_p] = {}

    def launch(self, name: str, size: int, *arguments: Tensor | float | None) -> None:
        """Run a kernel with `size` threads on the current stream. Tensors must be dense. May be captured in a graph.

        Raises RuntimeError where it cannot be launched.
        """
        if not size:
            return
        _check(size >= 2**31, f"{name}: {size:,} threads are too many")
        values = [ctypes.c_uint(size), *map(_argument, arguments)]
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        stream = ctypes.c_void_p(torch.cuda.current_stream(self._device).cuda_stream)
        _check(self._cuda.cuCtxSetCurrent(self._context))  # this thread may have none yet
        blocks = -(-size // _THREADS)
        _check(self._cuda.cuLaunchKernel(self._function(name), blocks, 1, 1, _THREADS, 1, 1, 0, stream, pointers, None))

    def _function(self, name: str) -> ctypes.c_void_p:
        if name not in self._functions:
            function = ctypes.c_void_p()
            _check(self._cuda.cuModuleGetFunction(ctypes.byref(function), self._module, name.encode()))
            self._functions[name] = function
        return self._functions[name]


def _argument(value: Tensor | float | None) -> ctypes.c_void_p | ctypes.c_int | ctypes.c_float:
    if value is None:
        return ctypes.c_void_p()
    if isinstance(value, Tensor):
        if not value.is_contiguous():
            raise RuntimeError("a kernel was given a tensor that is not dense")
        return ctypes.c_void_p(value.data_ptr())
    return ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int(value)


@cache
def launcher(device: torch.device) -> Launcher:
    """Those of a device, compiled when they are first asked for."""
    return Launcher(device)


def launch(name: str, size: int, first: Tensor, *others: Tensor | float | None) -> None:
    """See `Launcher.launch`, on the device of the first argument."""
    launcher(first.device).launch(name, size, first, *others)
