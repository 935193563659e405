"""Format of a checkpoint: a PyTorch archive, which is a zip file, with a checksum in its final comment.

The comment is the line `busso-checkpoint 5 <sha256>`. The checksum covers the archive as `torch.save` wrote it, without
a comment. `torch.load` can therefore open the file, and any flipped bit is detected.
"""

import hashlib
import os
import re
from pathlib import Path
from typing import IO, Any

import torch

from busso.cards.base.errors import UserError

MAGIC = b"busso-checkpoint 5 "
_LONGEST = 256  # bytes, more than the line's length


class OtherFormatError(UserError):
    """File of another version of busso, which must be neither used nor deleted."""


class DamagedError(ValueError):
    """File whose content differs from what was written."""


class Hashing:
    """Write-only file that hashes what is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()
        self.failed: OSError | None = None  # torch raises another error in its place

    def write(self, data: Any) -> int:
        """Write and hash data."""
        self.sha256.update(data)
        try:
            return self._file.write(data)
        except OSError as error:
            self.failed = error
            raise

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()


def write(file: IO[bytes], state: Any) -> None:
    """Write a complete file. Raises OSError on failure."""
    hashing = Hashing(file)
    try:
        torch.save(state, hashing)  # type: ignore[arg-type]
    except RuntimeError:
        if hashing.failed is not None:
            raise hashing.failed from None
        raise
    file.seek(-2, os.SEEK_END)  # the comment's length, so far two zero bytes
    file.write(_end(hashing.sha256.hexdigest()))


def read(path: Path, file: IO[bytes]) -> bytes:
    """Return a file's content, verified but unparsed, for `torch.load`. Raises DamagedError and OtherFormatError."""
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
    """Raise OtherFormatError for a file of another version, OSError if it cannot be read."""
    with path.open("rb") as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST))
        _last_line(path, file.read())


def _last_line(path: Path, data: bytes) -> bytes:
    """Return the last line. Raises OtherFormatError if it names another format."""
    line = [b"", *data[-_LONGEST:].splitlines()][-1]
    found = re.match(rb"busso-checkpoint (\d{1,9}) ", line)
    if found and found[0] != MAGIC:
        number, own = int(found[1]), int(MAGIC.split()[1])
        problem = f"format {number} of another busso version; this one reads {own}"
        raise OtherFormatError(path, problem, "use that version, or start another run with name=...")
    return line


def _end(digest: str) -> bytes:
    """Return the comment, preceded by its length."""
    comment = b"\n" + MAGIC + digest.encode() + b"\n"
    return len(comment).to_bytes(2, "little") + comment
