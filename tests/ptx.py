"""Compiling kernels for GPUs that are not there, down to what they run; needs numba-cuda and its compilers."""

import importlib.util
import re
from typing import Any

import numba
import numpy as np
import pytest
from numba import cuda, types
from numpy.typing import DTypeLike

CHIPS = {"A100": (8, 0), "L40": (8, 9), "H100": (9, 0)}
REGISTERS = 64  # of a thread at most: with more, fewer than 1,024 threads fit on a multiprocessor, which has 65,536

needs_compiler = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed: pip install 'busso[gpu]'"
)


def array(of: DTypeLike, dimensions: int = 1) -> Any:
    """The type of an array argument."""
    return types.Array(numba.from_dtype(np.dtype(of)), dimensions, "C")


def compiled(
    kernel: Any, arguments: tuple[Any, ...], chip: str, monkeypatch: pytest.MonkeyPatch, stack: int = 0
) -> str:
    """The code of a kernel; raises AssertionError if it allocates, or needs more than `stack` bytes of stack."""

    class Device:
        compute_capability = CHIPS[chip]

    # What a kernel calls is compiled for the device at hand; there is none.
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", Device)
    ptx: str = cuda.compile_ptx(kernel.py_func, types.void(*arguments), cc=CHIPS[chip])[0]
    major, minor = CHIPS[chip]
    assert f".target sm_{major}{minor}" in ptx and ".entry" in ptx
    assert not re.search(r"\bmalloc\b|NRT_", ptx), "it allocates"
    check_resources(assembled(ptx, chip), stack)
    return ptx


def assembled(ptx: str, chip: str) -> str:
    """What NVIDIA's assembler says of the machine code that it makes of this; it needs no GPU."""
    from cuda.bindings import nvjitlink

    major, minor = CHIPS[chip]
    linker = nvjitlink.create(2, [f"-arch=sm_{major}{minor}", "-Xptxas=-v"])
    try:
        code = ptx.encode()
        nvjitlink.add_data(linker, nvjitlink.InputType.PTX, code, len(code), "kernel")
        nvjitlink.complete(linker)
        report = bytearray(nvjitlink.get_info_log_size(linker))
        nvjitlink.get_info_log(linker, report)
        return report.decode()
    finally:
        nvjitlink.destroy(linker)


def check_resources(report: str, stack: int = 0, registers: int = REGISTERS) -> None:
    """Raises AssertionError if a kernel uses more stack or registers than allowed, or spills registers."""
    used = [int(found) for found in re.findall(r"Used (\d+) registers", report)]
    kept = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", report)
    assert used and max(used) <= registers, report
    assert kept and all(int(frame) <= stack and spilled == ["0", "0"] for frame, *spilled in kept), report
