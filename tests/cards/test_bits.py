"""Packed bits against Python integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from busso.cards.compiled.bits import (
    bit,
    has,
    highest,
    lowest,
    nth_bit,
    popcount,
    put,
    put_thermometer,
    unpack,
    words_for,
)

WORDS = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**63, 2**64 - 1]))
INDICES = st.integers(0, 63)


def as_integer(words: NDArray[np.uint64]) -> int:
    return sum(int(word) << 64 * k for k, word in enumerate(words))


@given(WORDS, INDICES)
def test_bits_of_a_word(word: int, index: int) -> None:
    bits = [k for k in range(64) if word >> k & 1]
    assert popcount(np.uint64(word)) == len(bits)
    assert lowest(np.uint64(word)) == (bits[0] if bits else 64)
    assert highest(np.uint64(word)) == (bits[-1] if bits else -1)
    assert [nth_bit(np.uint64(word), n) for n in range(66)] == (bits + [64] * 66)[:66]
    assert int(bit(index)) == 1 << index
    assert bool(has(np.uint64(word), index)) == bool(word >> index & 1)


@given(WORDS, st.integers(0, 127), st.integers(0, 2**128 - 1))
def test_put_keeps_what_is_there_and_straddles_words(value: int, offset: int, before: int) -> None:
    words = np.array([before & 2**64 - 1, before >> 64], np.uint64)
    put(words, offset, np.uint64(value))
    assert as_integer(words) == before | (value << offset) % 2**128


@given(st.integers(0, 63), st.integers(0, 64))
def test_thermometer(value: int, offset: int) -> None:
    words = np.zeros(2, np.uint64)
    put_thermometer(words, offset, value)
    assert unpack(words[None], 128)[0].tolist() == [float(offset <= k < offset + value) for k in range(128)]


@st.composite
def packed(draw: st.DrawFn) -> tuple[NDArray[np.uint64], int]:
    """Draw rows of words and the number of bits in use."""
    rows, columns = draw(st.integers(0, 5)), draw(st.integers(1, 4))
    words = draw(st.lists(WORDS, min_size=rows * columns, max_size=rows * columns))
    bits = draw(st.integers(1, 64 * columns))
    return np.array(words, np.uint64).reshape(rows, columns), bits


@given(packed())
def test_unpack(rows: tuple[NDArray[np.uint64], int]) -> None:
    words, bits = rows
    ones = unpack(words, bits)
    assert ones.dtype == np.float32 and ones.shape == (len(words), bits)
    assert ones.tolist() == [[as_integer(row) >> k & 1 for k in range(bits)] for row in words]


@pytest.mark.parametrize("shape, bits", [((2, 1), 65), ((2, 2), 0), ((2, 2), -1), ((4,), 10)])
def test_unpack_refuses_bits_that_do_not_fit(shape: tuple[int, ...], bits: int) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        unpack(np.zeros(shape, np.uint64), bits)


@pytest.mark.parametrize("bits, words", [(1, 1), (64, 1), (65, 2), (128, 2), (462, 8)])
def test_words_for(bits: int, words: int) -> None:
    assert words_for(bits) == words
