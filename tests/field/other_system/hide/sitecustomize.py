"""Startup hook of Python that hides Linux-only features, to simulate another system."""

import ctypes
import errno
import os
from pathlib import Path
from typing import Any

for name in ("memfd_create", "pidfd_open", "sched_getaffinity", "sched_setaffinity"):
    if hasattr(os, name):
        delattr(os, name)
if hasattr(os, "process_cpu_count"):  # Python 3.13, uses the affinity
    os.process_cpu_count = os.cpu_count

_symbol = ctypes.CDLL.__getattr__


def _without_prctl(library: ctypes.CDLL, name: str) -> Any:
    if name == "prctl":
        raise AttributeError(name)
    return _symbol(library, name)


ctypes.CDLL.__getattr__ = _without_prctl  # type: ignore[method-assign]


def _hide(method: str) -> None:
    found = getattr(Path, method)

    def hidden(path: Path, *arguments: Any, **options: Any) -> Any:
        if str(path).startswith(("/proc", "/dev/shm", "/sys")):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(path))
        return found(path, *arguments, **options)

    setattr(Path, method, hidden)


for method in ("iterdir", "open", "readlink", "stat"):  # busso's file access; Ray reads /proc by other functions
    _hide(method)
