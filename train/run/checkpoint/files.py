"""Files that are whole or absent, with a checksum in their first or last line.

That line begins with a magic, a name and the number of a format: `busso-checkpoint 4 `. An unknown number is that of
a newer busso. A failed read says nothing about the content of a file: it is tried again.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, TypeVar

from busso.cards.base.files import names_in
from busso.command.errors import UserError

T = TypeVar("T")

WAITS = (0.2, 1.0, 4.0)  # seconds between two tries; what takes a file server longer is for the next start


class NewerFormatError(UserError):
    """A file of a newer busso, which must neither be used nor deleted."""


class DamagedError(ValueError):
    """A file that is not what was written."""


class Hashing:
    """A file that is only written to, and hashed on the way."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()
        self.failed: OSError | None = None  # torch makes another error of it

    def write(self, data: Any) -> int:
        """As a file has it."""
        self.sha256.update(data)
        try:
            return self._file.write(data)
        except OSError as error:
            self.failed = error
            raise

    def flush(self) -> None:
        """As a file has it."""
        self._file.flush()


def header_bytes(magic: bytes) -> int:
    """Length of the first line of a file with this magic."""
    return len(magic) + 64 + 1


def refuse_newer(path: Path, line: bytes, known: Sequence[bytes]) -> None:
    """Raise NewerFormatError for a file whose line begins with the name of the `known` magics and another number."""
    name = known[0].split()[0]
    found = re.match(re.escape(name) + rb" (\d{1,9}) ", line)
    if found and found[0] not in known:
        numbers = sorted(magic.split()[1].decode() for magic in known)
        reads = numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        problem = f"its format is {found[1].decode()}, of a newer busso; this one reads {reads}"
        raise NewerFormatError(path, problem, "use the newer one, or another run with name=...")


@contextmanager
def on_disk(temporary: Path, magic: bytes = b"") -> Iterator[Hashing]:
    """A file that is on disk at the end, to be renamed; with a `magic`, that and the sha256 of the rest come first.

    If something goes wrong it is deleted. Raises OSError when it cannot be written.
    """
    hashing = None
    try:
        with temporary.open("wb") as file:
            file.write(bytes(header_bytes(magic) if magic else 0))
            hashing = Hashing(file)
            yield hashing
            if magic:
                file.seek(0)
                file.write(magic + hashing.sha256.hexdigest().encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        temporary.unlink(missing_ok=True)
        if hashing is not None and hashing.failed is not None:
            raise hashing.failed from None
        raise


def patiently(read: Callable[[], T]) -> T:
    """The value of `read`, which is called again after each of WAITS. Raises its last OSError."""
    for wait in WAITS:
        try:
            return read()
        except OSError:
            time.sleep(wait)
    return read()


def is_missing(path: Path) -> bool:
    """Whether a file that cannot be found is not in its folder either. Raises OSError when that cannot be read."""
    return path.name not in names_in(path.parent)
