"""Compiling kernels for GPUs that are not there; needs numba-cuda and its compiler."""

import importlib.util
import re
from typing import Any

import numba
import numpy as np
import pytest
from numba import cuda, types
from numpy.typing import DTypeLike

CHIPS = {"A100": (8, 0), "L40": (8, 9), "H100": (9, 0)}

needs_compiler = pytest.mark.skipif(
    importlib.util.find_spec("numba_cuda") is None, reason="numba-cuda is not installed: pip install 'busso[gpu]'"
)


def array(of: DTypeLike, dimensions: int = 1) -> Any:
    """The type of an array argument."""
    return types.Array(numba.from_dtype(np.dtype(of)), dimensions, "C")


def compiled(kernel: Any, arguments: tuple[Any, ...], chip: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The code of a kernel; raises AssertionError if it allocates."""

    class Device:
        compute_capability = CHIPS[chip]

    # What a kernel calls is compiled for the device at hand; there is none.
    monkeypatch.setattr("numba.cuda.dispatcher.get_current_device", Device)
    ptx: str = cuda.compile_ptx(kernel.py_func, types.void(*arguments), cc=CHIPS[chip])[0]
    major, minor = CHIPS[chip]
    assert f".target sm_{major}{minor}" in ptx and ".entry" in ptx
    assert not re.search(r"\bmalloc\b|NRT_", ptx), "it allocates"
    return ptx
