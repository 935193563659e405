"""Different rows of words, numbered: a hash table by whole rows, so that no two are ever taken for the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cards.compiled import njit
from cards.splitmix import mix

Rows = NDArray[np.uint64]
_EMPTY = -1


class RowNumbers:
    """Numbers rows `[n, words]` of uint64 0, 1, 2, ... in the order in which they first come."""

    def __init__(self, words: int) -> None:
        self.count = 0
        self._rows = np.empty((0, words), np.uint64)
        self._slots = np.full(2, _EMPTY, np.int64)

    def number(self, rows: Rows) -> NDArray[np.int64]:
        """The number of each row, `[n]`; rows that never came before get the next ones."""
        self._reserve(self.count + len(rows))
        out = np.empty(len(rows), np.int64)
        self.count = _look_up(rows, self._rows, self._slots, self.count, True, out)
        return out

    def find(self, rows: Rows) -> NDArray[np.int64]:
        """The number of each row, `[n]`; -1 for one that never came."""
        out = np.empty(len(rows), np.int64)
        _look_up(rows, self._rows, self._slots, self.count, False, out)
        return out

    def _reserve(self, count: int) -> None:
        if count > len(self._rows):
            rows = np.empty((max(count, 2 * len(self._rows)), self._rows.shape[1]), np.uint64)
            rows[: self.count] = self._rows[: self.count]
            self._rows = rows
            # At most half of the slots are taken, so that there is always an empty one soon.
            self._slots = np.full(1 << (2 * len(rows)).bit_length(), _EMPTY, np.int64)
            _look_up(rows[: self.count], rows, self._slots, 0, True, np.empty(self.count, np.int64))


@njit
def _same(one: Any, other: Any) -> bool:
    k = 0
    while k < one.size and one[k] == other[k]:
        k += 1
    return k == one.size


@njit(nogil=True)
def _look_up(rows: Any, known: Any, slots: Any, count: int, add: bool, out: Any) -> int:
    """Write the place in `known` of each row, `_EMPTY` where it has none and is not to be added; returns the count."""
    last = np.uint64(slots.size - 1)
    for k in range(len(rows)):
        row = rows[k]
        slot = np.uint64(0)
        for word in row:
            slot = mix(slot ^ word)
        slot &= last
        while slots[slot] >= 0 and not _same(known[slots[slot]], row):
            slot = (slot + np.uint64(1)) & last
        if slots[slot] < 0 and add:
            known[count, :] = row
            slots[slot] = count
            count += 1
        out[k] = slots[slot]
    return count
