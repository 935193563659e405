"""The format of a checkpoint: PyTorch's own archive, a zip file, whose comment is two lines of text.

The first is JSON: the columns in files of their own (`busso.train.run.checkpoint.segments`). The second is
`busso-checkpoint 4 <sha256 of all before it>`. So `torch.load` opens the file, and a flipped bit anywhere is found.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import IO, Any

import torch

from busso.train.run.checkpoint.columns import Place
from busso.train.run.checkpoint.files import DamagedError, Hashing, header_bytes, refuse_newer

MAGIC = b"busso-checkpoint 4 "
_CHECKSUM = header_bytes(MAGIC) - len(MAGIC)
_LONGEST_COMMENT = 1 << 16  # bytes, of a zip file


class _WithoutEnd:
    """A file that does not get its last two bytes: those of an archive say how long its comment is."""

    def __init__(self, file: Hashing) -> None:
        self._file, self._held = file, b""

    def write(self, data: memoryview) -> int:
        """As a file has it."""
        self._file.write(self._held)
        self._file.write(data[:-2])
        self._held = bytes(data[-2:])
        return len(data)

    def flush(self) -> None:
        """As a file has it."""


def write(file: Hashing, state: Any, descriptions: list[dict[str, Any]]) -> None:
    """Write all of a file, in one pass."""
    torch.save(state, _WithoutEnd(file))  # type: ignore[arg-type]
    comment = b"\n" + json.dumps(descriptions).encode() + b"\n" + MAGIC
    file.write((len(comment) + _CHECKSUM).to_bytes(2, "little"))
    file.write(comment)
    file.write(file.sha256.hexdigest().encode() + b"\n")


def read(path: Path, file: IO[bytes]) -> tuple[dict[Place, Any], bytes]:
    """Descriptions of columns by their places, and the file, which begins with what `torch.save` wrote.

    Raises DamagedError before anything is parsed, NewerFormatError for a file of a newer busso.
    """
    text, line = lines(path, file)
    if not line.startswith(MAGIC):
        raise DamagedError("not a checkpoint of busso, or cut short")
    file.seek(0)
    data = file.read()
    if hashlib.sha256(memoryview(data)[:-_CHECKSUM]).hexdigest().encode() + b"\n" != line[len(MAGIC) :]:
        raise DamagedError("damaged (its checksum does not match)")
    return {tuple(each["place"]): each for each in json.loads(text)}, data


def lines(path: Path, file: IO[bytes]) -> tuple[bytes, bytes]:
    """The line of JSON, and that with the magic, both unchecked. Raises NewerFormatError."""
    file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST_COMMENT))
    text, line = [b"", b"", *file.read().splitlines(keepends=True)][-2:]
    refuse_newer(path, line, [MAGIC])
    return text, line
