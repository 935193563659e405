"""A ring of rows that is written to files while new rows replace the oldest."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from torch import Tensor

from busso.train.run.checkpoint.columns import RowType, piece_rows
from busso.train.run.checkpoint.segments import FOLDER, GrowingColumns, Segments, segment_rows


class RingGuard:
    """Makes a writer of rows wait for the readers that still need them.

    Rows are counted from the first that was ever inserted, so the row in place k of a ring of n is k, n + k, 2n + k ...
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._needed: dict[RingColumns, int] = {}

    def hold(self, who: RingColumns, row: int) -> None:
        """From now on `who` needs `row` and all after it, up to the newest."""
        with self._changed:
            self._needed[who] = row

    def advance(self, who: RingColumns, row: int) -> None:
        """No row before `row` is needed by `who` any more. No effect if it holds none, or only later ones."""
        with self._changed:
            if self._needed.get(who, row) < row:
                self._needed[who] = row
                self._changed.notify_all()

    def release(self, who: RingColumns) -> None:
        """`who` needs nothing any more."""
        with self._changed:
            self._needed.pop(who, None)
            self._changed.notify_all()

    def wait(self, row: int) -> None:
        """Until no row before `row` is needed."""
        with self._changed:
            self._changed.wait_for(lambda: all(needed >= row for needed in self._needed.values()))


class RingColumns(GrowingColumns):
    """The rows of a ring after `inserted` insertions, from the oldest on: that is the next one to be overwritten.

    Once held, a row stays what it is until the piece after its own is asked for, so that who writes the pieces to a
    file is always ahead of who overwrites them; the latter waits only where it catches up. Rows that are on disk
    already are not held.
    """

    def __init__(self, tensors: Sequence[Tensor], inserted: int, guard: RingGuard, segments: Segments) -> None:
        """`tensors` are those of the whole ring."""
        capacity = len(tensors[0])
        rows = min(inserted, capacity)
        self._ring, self._guard = tensors, guard
        kinds = [RowType(tensor.dtype, tuple(tensor.shape[1:])) for tensor in tensors]
        row_bytes = sum(kind.nbytes for kind in kinds)
        length = segment_rows(capacity, row_bytes)
        super().__init__(kinds, rows, piece_rows(row_bytes), inserted, length, segments)
        self._held_from = self.oldest

    def held(self, beside: Path) -> RingColumns:
        held = RingColumns(self._ring, self.inserted, self._guard, self.segments)
        new = (first for first, end in self.stretches() if self.segments.find(beside / FOLDER, first, end) is None)
        held._held_from = next(new, self.inserted)
        self._guard.hold(held, held._held_from)
        return held

    def release(self) -> None:
        self._guard.release(self)

    def pieces(self) -> Iterator[tuple[int, list[Tensor]]]:
        """Slices of the ring as it is now."""
        for start, stop in self.spans():
            yield start, [tensor[start:stop].cpu() for tensor in self._ring]

    def between(self, first: int, end: int) -> Iterator[list[Tensor]]:
        """See `GrowingColumns`; asking for the next piece sets the one before free."""
        if first < self._held_from:
            raise FileNotFoundError(f"rows from {first} on are no longer on disk")
        for start in range(first, end, self.piece):
            stop = min(start + self.piece, end)
            yield [self._slice(tensor, start, stop) for tensor in self._ring]
            self.done(stop)

    def done(self, end: int) -> None:
        """See `GrowingColumns`. When all is handed over, not even a whole new ring has to wait for the disk."""
        if end < self.inserted:
            self._guard.advance(self, end)
        else:
            self._guard.release(self)

    def _slice(self, tensor: Tensor, start: int, stop: int) -> Tensor:
        begin, count = start % len(tensor), stop - start
        head = tensor[begin : begin + count]
        return head.cpu() if len(head) == count else torch.cat([head, tensor[: count - len(head)]]).cpu()
