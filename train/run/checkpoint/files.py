"""Files that are whole or not there, with a checksum over all but their first line.

That line begins with a magic, a name and the number of a format: `busso-checkpoint 3 `. A number that is not known is
that of a newer busso.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from command.errors import UserError


class NewerFormatError(UserError):
    """A file of a newer busso, which must neither be used nor deleted."""


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


def refuse_newer(path: Path, header: bytes, known: Sequence[bytes]) -> None:
    """Raise NewerFormatError for a file whose first bytes have the name of the `known` magics and another number."""
    name = known[0].split()[0]
    found = re.match(re.escape(name) + rb" (\d{1,9}) ", header)
    if found and found[0] not in known:
        numbers = sorted(magic.split()[1].decode() for magic in known)
        reads = numbers[0] if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
        problem = f"its format is {found[1].decode()}, of a newer busso; this one reads {reads}"
        raise NewerFormatError(path, problem, "use the newer one, or another run with name=...")


@contextmanager
def on_disk(temporary: Path, magic: bytes) -> Iterator[Hashing]:
    """A file that is on disk at the end, to be renamed; its first line is `magic` and the sha256 of the rest.

    If something goes wrong it is deleted. Raises OSError when it cannot be written.
    """
    hashing = None
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
        if hashing is not None and hashing.failed is not None:
            raise hashing.failed from None
        raise
