"""Files that are whole or not there, with a checksum over all but their first line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, count
from pathlib import Path
from typing import IO, Any


class Hashing:
    """A file that is only written to, and hashed on the way."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def write(self, data: Any) -> int:
        """As a file has it."""
        self.sha256.update(data)
        return self._file.write(data)

    def flush(self) -> None:
        """As a file has it."""
        self._file.flush()


def header_bytes(magic: bytes) -> int:
    """Length of the first line of a file with this magic."""
    return len(magic) + 64 + 1


@contextmanager
def on_disk(temporary: Path, magic: bytes) -> Iterator[Hashing]:
    """A file that is on disk at the end, to be renamed; its first line is `magic` and the sha256 of the rest.

    If something goes wrong it is deleted.
    """
    try:
        with temporary.open("wb") as file:
            file.write(bytes(header_bytes(magic)))
            hashing = Hashing(file)
            yield hashing
            file.seek(0)
            file.write(magic + hashing.sha256.hexdigest().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def rename_aside(path: Path, mark: str) -> Path:
    """Rename a file to `NAME-MARK`, where nothing lies yet; returns the new name."""
    names = (f"{path.stem}-{mark}{number}{path.suffix}" for number in chain([""], (f"-{k}" for k in count(2))))
    aside = next(each for name in names if not (each := path.with_name(name)).exists())
    return path.rename(aside)
