"""The rows of a replay buffer in separate files, so a checkpoint writes only the rows since the one before.

Rows are counted from the first that was ever inserted. They are cut into segments at multiples of a fixed length; each
segment is a file beside the checkpoints, written once, never changed, and named after its rows and its checksum. The
last one ends where the rows do: of a later checkpoint a longer one takes its place. A checkpoint names the segments
that it needs; of the oldest, it may need only the later rows.
"""

from __future__ import annotations

import hashlib
import re
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

from busso.cards.base.files import delete_left_over, sync_folder, temporary_beside
from busso.train.run.checkpoint.columns import Columns, RowType, as_bytes, described, kinds_of, read_into
from busso.train.run.checkpoint.files import (
    Hashing,
    NewerFormatError,
    header_bytes,
    is_missing,
    on_disk,
    patiently,
    refuse_newer,
)

FOLDER = "replay"  # of the segments, beside the checkpoints
MAGIC = b"busso-rows 1 "
SEGMENT_BYTES = 4 << 20  # at least: the last one is written again with every checkpoint
MOST = 64  # segments of a full buffer, and one or two that are cut short
_NAME = re.compile(r"rows_\d+_\d+_[0-9a-f]{16}\.seg")


@dataclass(frozen=True)
class Segment:
    """Rows `first .. end - 1` in a file, in pieces of `piece` rows; of each piece one column after another."""

    name: str
    first: int
    end: int
    piece: int
    sha256: str


def segment_rows(capacity: int, row_bytes: int) -> int:
    """How many rows a segment of a buffer has."""
    return max(1, SEGMENT_BYTES // max(1, row_bytes), -(-capacity // MOST))


class Segments:
    """The segments that are known to be whole on disk, by folder and end: those of one buffer, as it grows."""

    def __init__(self) -> None:
        self._known: dict[tuple[Path, int], Segment] = {}

    def add(self, folder: Path, segment: Segment) -> None:
        """It is there."""
        self._known[folder, segment.end] = segment

    def find(self, folder: Path, first: int, end: int) -> Segment | None:
        """One that ends with row `end - 1`, has all rows from `first` on, and has not been deleted."""
        found = self._known.get((folder, end))
        return found if found and found.first <= first and (folder / found.name).exists() else None

    def forget(self, before: int) -> None:
        """Those that end before this row are of no use any more."""
        self._known = {key: segment for key, segment in self._known.items() if segment.end > before}


class GrowingColumns(Columns):
    """The newest `rows` of `inserted` rows; `segments` says which of them are on disk already."""

    def __init__(
        self, kinds: Sequence[RowType], rows: int, piece: int, inserted: int, length: int, segments: Segments
    ) -> None:
        super().__init__(kinds, rows, first=(inserted - rows) % max(1, rows), piece=piece)
        self.inserted, self.oldest = inserted, inserted - rows
        self.length, self.segments = length, segments

    @abstractmethod
    def between(self, first: int, end: int) -> Iterator[list[Tensor]]:
        """These rows, in order, in pieces of `piece` rows but for the last, on the CPU; who asks on has done with one.

        Raises OSError when they are not there any more.
        """

    @abstractmethod
    def done(self, end: int) -> None:
        """Rows before `end` are not asked for any more."""

    def stretches(self) -> Iterator[tuple[int, int]]:
        """First row and end of each segment, or of the part of it that is needed."""
        first = self.oldest
        while first < self.inserted:
            end = min((first // self.length + 1) * self.length, self.inserted)
            yield first, end
            first = end

    def written(self, beside: Path) -> dict[str, Any]:
        """Writes the segments that are not on disk yet."""
        folder = beside / FOLDER
        folder.mkdir(exist_ok=True)
        needed, new = [], False
        for first, end in self.stretches():
            segment = self.segments.find(folder, first, end)
            if segment is None:
                new, segment = True, _write(self, folder, first, end)
                self.segments.add(folder, segment)
            self.done(end)
            needed.append(segment)
        self.segments.forget(self.oldest)
        if new:
            sync_folder(folder)
            sync_folder(beside)
        return described(self) | {"inserted": self.inserted, "segments": [astuple(segment) for segment in needed]}


def _write(columns: GrowingColumns, folder: Path, first: int, end: int) -> Segment:
    temporary = temporary_beside(folder / f"rows_{first:015d}_{end:015d}")
    with on_disk(temporary, MAGIC) as file:
        _write_rows(columns.between(first, end), file)
    checksum = file.sha256.hexdigest()
    name = f"rows_{first:015d}_{end:015d}_{checksum[:16]}.seg"
    temporary.replace(folder / name)
    return Segment(name, first, end, columns.piece, checksum)


def _write_rows(pieces: Iterator[list[Tensor]], file: Hashing) -> None:
    for piece in pieces:
        for values in piece:
            file.write(as_bytes(values))


class StoredSegments(Columns):
    """Columns in segments, which are read when they are asked for."""

    def __init__(self, folder: Path, description: dict[str, Any]) -> None:
        """From what `written` returned. Raises ValueError when it cannot be."""
        kinds, rows, first, piece = kinds_of(description)
        super().__init__(kinds, rows, first, piece)
        self.folder, self.inserted, self._description = folder, description["inserted"], description
        self._checked = False
        self.segments = [Segment(*fields) for fields in description["segments"]]
        at = self.inserted - rows
        for segment in self.segments:
            numbers = (segment.first, segment.end, segment.piece)
            if not _NAME.fullmatch(segment.name) or not all(type(number) is int for number in numbers):
                raise ValueError("its segments have impossible names or numbers")
            if not 0 <= segment.first <= at < segment.end or segment.piece < 1:
                raise ValueError("its segments do not follow one another")
            at = segment.end
        if at != self.inserted or (rows and first != at % rows):
            raise ValueError("its segments do not hold its rows")

    def written(self, beside: Path) -> dict[str, Any]:
        """They are on disk, if `beside` is where they were."""
        return self._description

    def check(self) -> None:
        """Raises ValueError, with the name of the file, when a segment is missing or damaged.

        OSError when one cannot be read, NewerFormatError for one of a newer busso. Once they were found to be whole
        they are not read again for it.
        """
        for segment in [] if self._checked else self.segments:
            path = self.folder / segment.name
            with self._opened(path) as file:
                line = file.readline(header_bytes(MAGIC))
                whole = hashlib.file_digest(file, "sha256").hexdigest() == segment.sha256  # type: ignore[arg-type]
            refuse_newer(path, line, [MAGIC])
            if not whole or line != MAGIC + segment.sha256.encode() + b"\n":
                raise ValueError(f"{path} has changed")
        self._checked = True

    def pieces(self) -> Iterator[tuple[int, list[Tensor]]]:
        """Read from the files. Raises ValueError when one is missing or has become shorter, else OSError."""
        stored = self._stored()
        left = [torch.empty(0, *kind.shape, dtype=kind.dtype) for kind in self.kinds]
        for start, stop in self.spans():
            parts, wanted = [], stop - start
            while wanted:
                if not len(left[0]):
                    left = next(stored)
                parts.append([values[:wanted] for values in left])
                left = [values[wanted:] for values in left]
                wanted -= len(parts[-1][0])
            yield start, [torch.cat(values) for values in zip(*parts, strict=True)]

    def _stored(self) -> Iterator[list[Tensor]]:
        """All rows, from the oldest on, in the pieces in which they were written."""
        at = self.inserted - self.rows
        for segment in self.segments:
            skipped = (at - segment.first) // segment.piece * segment.piece  # whole pieces
            for first in range(segment.first + skipped, segment.end, segment.piece):
                rows = min(segment.piece, segment.end - first)
                piece = patiently(partial(self._read, segment, first, rows))
                yield [values[max(0, at - first) :] for values in piece]
            at = segment.end

    def _read(self, segment: Segment, first: int, rows: int) -> list[Tensor]:
        piece = [torch.empty(rows, *kind.shape, dtype=kind.dtype) for kind in self.kinds]
        with self._opened(self.folder / segment.name) as file:
            file.seek(header_bytes(MAGIC) + (first - segment.first) * sum(kind.nbytes for kind in self.kinds))
            for values in piece:
                read_into(file, as_bytes(values))
        return piece

    def _opened(self, path: Path) -> IO[bytes]:
        try:
            return path.open("rb")
        except (FileNotFoundError, NotADirectoryError) as error:
            if not is_missing(path):  # it is listed: the file server is behind
                raise
            raise ValueError(f"{path} cannot be read ({error.strerror})") from None


def delete_all_but(beside: Path, needed: set[str]) -> None:
    """Delete the segments that are not `needed`, and what an interrupted write left behind.

    Those of a newer busso stay, and those that cannot be read.
    """
    delete_left_over(beside / FOLDER)
    for path in (beside / FOLDER).glob("*"):
        if _NAME.fullmatch(path.name) and path.name not in needed and _is_known(path):
            path.unlink(missing_ok=True)


def check_there(beside: Path, description: dict[str, Any]) -> None:
    """Raises FileNotFoundError when a segment of a description has been deleted since it was written."""
    for name, *_ in description.get("segments", []):
        (beside / FOLDER / name).stat()


def _is_known(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            refuse_newer(path, file.read(header_bytes(MAGIC)), [MAGIC])
    except (OSError, NewerFormatError):
        return False
    return True
