"""Retries of failed reads, which say nothing about a file's content."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from busso.cards.base.files import names_in

T = TypeVar("T")

WAITS = (0.2, 1.0, 4.0)  # seconds between two attempts; longer outages are left to the next start


def with_retries(read: Callable[[], T]) -> T:
    """Return the value of `read`, retrying after each of WAITS. Raises its last OSError."""
    for wait in WAITS:
        try:
            return read()
        except OSError:
            time.sleep(wait)
    return read()


def is_missing(path: Path) -> bool:
    """Return whether a file that cannot be opened is missing. Raises OSError if its folder is unreadable."""
    return path.name not in names_in(path.parent)
