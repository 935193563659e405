"""Reads that fail say nothing of what is in a file: they are tried again before anything follows from them."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

WAITS = (0.2, 1.0, 4.0)  # seconds between two tries; what takes a file server longer is for the next start


def patiently(read: Callable[[], T]) -> T:
    """What `read` returns, which is called again after each of WAITS. Raises its last OSError."""
    for wait in WAITS:
        try:
            return read()
        except OSError:
            time.sleep(wait)
    return read()


def names_in(folder: Path) -> list[str]:
    """The names in a folder, none where there is no folder. Raises OSError when it cannot be read.

    `Path.glob` takes a folder that cannot be read for an empty one.
    """
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_missing(path: Path) -> bool:
    """Whether a file that cannot be found is not in its folder either. Raises OSError when that cannot be read."""
    return path.name not in names_in(path.parent)
