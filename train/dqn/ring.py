"""A ring of rows that is written to a file while new rows go on replacing the oldest."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

from torch import Tensor

from train.run.columns import TensorColumns


class RingGuard:
    """Makes whoever overwrites rows wait for those who still need them.

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
        """No row before `row` is needed by `who` any more. No effect if it holds none."""
        with self._changed:
            if who in self._needed:
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


class RingColumns(TensorColumns):
    """The rows of a ring after `inserted` insertions, from the oldest on: that is the next one to be overwritten.

    Once held, a row stays what it is until the piece after its own is asked for, so that who writes the pieces to a
    file is always ahead of who overwrites them; the latter waits only where it catches up.
    """

    def __init__(self, tensors: Sequence[Tensor], inserted: int, guard: RingGuard) -> None:
        self._oldest = inserted - len(tensors[0])
        # A ring that is not full begins with place 0, and its rows are overwritten from there on, too.
        super().__init__(tensors, first=self._oldest % max(1, len(tensors[0])))
        self._inserted, self._guard = inserted, guard

    def held(self) -> RingColumns:
        """See `Columns.held`."""
        held = RingColumns(self._tensors, self._inserted, self._guard)
        self._guard.hold(held, self._oldest)
        return held

    def release(self) -> None:
        """See `Columns.release`."""
        self._guard.release(self)

    def pieces(self) -> Iterator[tuple[int, list[Tensor]]]:
        """Slices of the ring; asking for the next one sets the one before free."""
        done = self._oldest
        for start, piece in super().pieces():
            yield start, piece
            done += len(piece[0])
            self._guard.advance(self, done)
        self._guard.release(self)  # all is handed over, so not even a whole new ring has to wait for the disk
