"""Interchangeable parts of a game: swapping two of them in all observations and actions leaves the game the same."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Symmetry:
    """Interchangeable parts of a game, such as suits without trumps, with their bits and actions.

    `part[k]` is the part that observation bit `k` describes, or -1 for none. `place[k]` is the bit's place among the
    bits of that part, or among those of no part: bits that swap when parts are swapped have the same place. With `n`
    actions per part, action `a` is number `a % n` of part `a // n`.
    """

    parts: int
    part: NDArray[np.int64]
    place: NDArray[np.int64]

    def first(self, bits: int) -> Symmetry:
        """Return the symmetry of the first `bits` bits. Raises ValueError if they do not cover all parts alike."""
        part, place = self.part[:bits], self.place[:bits]
        for number in range(-1, self.parts):
            there = np.sort(place[part == number])
            size = there.size if number < 0 else (part == 0).sum()
            if not np.array_equal(there, np.arange(size)):
                raise ValueError(f"the first {bits} bits of an observation do not hold the same for every part")
        return Symmetry(self.parts, part, place)

    @property
    def places(self) -> int:
        """Number of bits per part."""
        return int((self.part == 0).sum())

    @property
    def common(self) -> int:
        """Number of bits of no part."""
        return int((self.part < 0).sum())


def layout(groups: list[tuple[int, int, NDArray[np.int64]]], parts: int, bits: int) -> Symmetry:
    """Return the symmetry of an observation layout; bits in no group belong to no part.

    A group has `size` bits per part from `start` on, at the offsets `order`, `[parts, size]`.
    """
    part, place = np.full(bits, -1, np.int64), np.zeros(bits, np.int64)
    at = 0
    for start, size, order in groups:
        for number in range(parts):
            part[start + order[number]] = number
            place[start + order[number]] = at + np.arange(size)
        at += size
    none = part < 0
    place[none] = np.arange(none.sum())
    return Symmetry(parts, part, place)
