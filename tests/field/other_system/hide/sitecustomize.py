"""Python imports it when a process starts: on Linux, it hides what Linux alone has, as if the system were another."""

import ctypes
import errno
import os
from pathlib import Path
from typing import Any

for name in ("memfd_create", "pidfd_open", "sched_getaffinity", "sched_setaffinity"):
    if hasattr(os, name):
        delattr(os, name)
if hasattr(os, "process_cpu_count"):  # of Python 3.13, which asks for the affinity
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


for method in ("iterdir", "open", "readlink", "stat"):  # busso's way to files; Ray reads /proc by others
    _hide(method)
