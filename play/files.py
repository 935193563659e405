"""Files that a table writes: whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from cards.files import write_atomic


def write_whole(path: Path, text: str) -> None:
    """Put a text in the place of a file's, by way of a file beside it. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, text)


def append_lines(path: Path, lines: list[str]) -> None:
    """Add lines to a file, all or none; one that ends in the middle of a line is given its end first. OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with _named(path), path.open("ab+", buffering=0) as file:
        end = file.seek(0, os.SEEK_END)
        if end > 0:
            file.seek(-1, os.SEEK_END)
            lines = lines if file.read(1) == b"\n" else ["", *lines]
        left = "".join(f"{line}\n" for line in lines).encode()
        try:
            while left:  # a disk that is nearly full takes a part of it
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                file.truncate(end)
            raise


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """What goes wrong names the file, which the system leaves out when it is open already, or another beside it."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from None


def free_path(folder: Path, name: str, suffix: str) -> Path:
    """`folder/name.suffix`, or with a number after the name where there is such a file already.

    The file is made, empty: tables that are saved at the same moment must not get the same one. Raises OSError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path, number = folder / f"{name}{suffix}", 1
    while True:
        try:
            path.open("x").close()
        except FileExistsError:
            number += 1
            path = folder / f"{name}-{number}{suffix}"
        else:
            return path
