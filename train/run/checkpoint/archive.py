"""The format of a checkpoint: PyTorch's own archive, a zip file, with a checksum in the comment at its end.

The comment is the line `busso-checkpoint 5 <sha256>`. The checksum is that of the archive as `torch.save` wrote it,
without a comment. So `torch.load` opens the file, and a flipped bit anywhere is found.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import IO, Any

import torch

from busso.command.errors import UserError

MAGIC = b"busso-checkpoint 5 "
_LONGEST = 256  # bytes, more than the line has


class OtherFormatError(UserError):
    """A file of another version of busso, which must neither be used nor deleted."""


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


def write(file: IO[bytes], state: Any) -> None:
    """Write a whole file. Raises OSError when it cannot be written."""
    hashing = Hashing(file)
    try:
        torch.save(state, hashing)  # type: ignore[arg-type]
    except RuntimeError:
        if hashing.failed is not None:
            raise hashing.failed from None
        raise
    file.seek(-2, os.SEEK_END)  # the length of the comment, two zeros so far
    file.write(_end(hashing.sha256.hexdigest()))


def read(path: Path, file: IO[bytes]) -> bytes:
    """Return the content of a whole file, for `torch.load`.

    Raises DamagedError before anything is parsed, OtherFormatError for a file of another version.
    """
    data = file.read()
    if not _last_line(path, data).startswith(MAGIC):
        raise DamagedError("not a checkpoint of busso, or truncated")
    length = len(_end("0" * 64))
    sha256 = hashlib.sha256(memoryview(data)[:-length])
    sha256.update(bytes(2))
    if data[-length:] != _end(sha256.hexdigest()):
        raise DamagedError("damaged (its checksum does not match)")
    return data


def check_format(path: Path) -> None:
    """Raise OtherFormatError for a file of another version, and OSError when it cannot be read."""
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST))
        _last_line(path, file.read())


def _last_line(path: Path, data: bytes) -> bytes:
    """Raises OtherFormatError where it has the number of another format."""
    line = [b"", *data[-_LONGEST:].splitlines()][-1]
    found = re.match(rb"busso-checkpoint (\d{1,9}) ", line)
    if found and found[0] != MAGIC:
        number, own = int(found[1]), int(MAGIC.split()[1])
        problem = f"format {number} of another busso version; this one reads {own}"
        raise OtherFormatError(path, problem, "use that version, or start another run with name=...")
    return line


def _end(digest: str) -> bytes:
    """The length of the comment, and the comment."""
    comment = b"\n" + MAGIC + digest.encode() + b"\n"
    return len(comment).to_bytes(2, "little") + comment
