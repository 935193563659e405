"""First layer of a network for a game with interchangeable parts, with the same weights for each part."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from busso.cards.compiled.bits import WORD, lowest
from busso.cards.compiled.jit import njit
from busso.cards.compiled.symmetry import Symmetry
from busso.train.dqn.network.packed_linear import (
    Floats,
    Integers,
    PackedLinear,
    Words,
    add_row,
    relu,
    seen_word,
    sum_row,
)


class PartLinear(PackedLinear):
    """Linear layer with ReLU on the observation bits of each part.

    Packed observations, int64 `[batch, words]` -> `[parts * batch, width]`, part by part. The weight has a row for each
    bit of a part, by place, followed by a row for each bit of no part.
    """

    def __init__(self, symmetry: Symmetry, width: int) -> None:
        super().__init__(symmetry.places + symmetry.common, width)
        self.parts = symmetry.parts
        row = np.where(symmetry.part < 0, symmetry.places, 0) + symmetry.place
        self._bits = _Bits(symmetry.part, row, symmetry.parts)
        bit_of = np.empty((self.parts, self.bits), np.int64)
        for part in range(self.parts):
            mine = np.flatnonzero((symmetry.part == part) | (symmetry.part < 0))
            bit_of[part, row[mine]] = mine
        self._set_places(bit_of)

    def gather(self, words: Words, out: Floats) -> None:
        _sums(words, self._bits, self.weight.numpy(), self.bias.numpy(), out)

    def scatter(self, words: Words, of_sum: Floats, of_weight: Floats) -> None:
        _add(words, self._bits, of_sum, of_weight)


class _Bits(NamedTuple):
    """Part of each observation bit, -1 for none, and its row in the weight."""

    part: Integers
    row: Integers
    parts: int


@njit
def _find(words: Words, bits: _Bits, found: Integers, counts: Integers) -> None:
    """Write the weight rows of the set bits: `found[p]` for part `p`, the last entry for bits of no part."""
    for k in range(counts.size):
        counts[k] = 0
    part, none = bits.part, bits.parts
    for k in range((part.size + WORD - 1) // WORD):
        word = seen_word(words, k, part.size)
        while word != np.uint64(0):
            bit = WORD * k + lowest(word)
            word &= word - np.uint64(1)
            p = part[bit] if part[bit] >= 0 else none
            found[p, counts[p]] = bits.row[bit]
            counts[p] += 1


@njit(nogil=True)
def _sums(words: Words, bits: _Bits, weight: Floats, bias: Floats, out: Floats) -> None:
    parts, rows = bits.parts, words.shape[0]
    found, counts = np.empty((parts + 1, bits.part.size), np.int64), np.empty(parts + 1, np.int64)
    common = np.empty(bias.size, np.float32)
    for k in range(rows):
        _find(words[k], bits, found, counts)
        sum_row(found[parts], counts[parts], weight, bias, common)
        for p in range(parts):
            sum_row(found[p], counts[p], weight, common, out[p * rows + k])
            relu(out[p * rows + k])


@njit(nogil=True)
def _add(words: Words, bits: _Bits, gradient: Floats, out: Floats) -> None:
    """Add each part's gradient to the rows of its bits, and the sum over the parts to the rows of no part."""
    parts, rows = bits.parts, words.shape[0]
    found, counts = np.empty((parts + 1, bits.part.size), np.int64), np.empty(parts + 1, np.int64)
    common = np.empty(gradient.shape[1], np.float32)
    for k in range(rows):
        _find(words[k], bits, found, counts)
        for column in range(common.size):
            common[column] = np.float32(0)
        for p in range(parts):
            own = gradient[p * rows + k]
            add_row(found[p], counts[p], own, out)
            for column in range(common.size):
                common[column] += own[column]
        add_row(found[parts], counts[parts], common, out)
