"""Sets of up to 64 elements as the bits of a uint64, and packed observations."""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import config, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from busso.cards.compiled.jit import njit

WORD = 64


def _instruction(name: str, *flags: int) -> Any:
    """Return a function, for compiled code, that is one LLVM instruction on a word."""

    @intrinsic
    def call(typingctx: Any, word: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return getattr(builder, name)(args[0], *(ir.Constant(ir.IntType(1), flag) for flag in flags))

        return types.uint64(types.uint64), codegen

    return call


_ctpop = _instruction("ctpop")
# Flag 0 defines the result for an empty word: 64.
_cttz = _instruction("cttz", 0)
_ctlz = _instruction("ctlz", 0)
if config.DISABLE_JIT:
    _ctpop = np.bitwise_count
    _cttz = lambda word: np.bitwise_count(~word & (word - np.uint64(1)))  # noqa: E731
    _ctlz = lambda word: WORD - int(word).bit_length()  # noqa: E731


@njit
def bit(index: int) -> np.uint64:
    """Return the word with only bit `index` set, 0 to 63."""
    return np.uint64(1) << np.uint64(index)


@njit
def has(word: np.uint64, index: int) -> np.bool_:
    """Return whether bit `index` of `word` is set."""
    return (word >> np.uint64(index)) & np.uint64(1) != np.uint64(0)


@njit
def popcount(word: np.uint64) -> np.int64:
    """Count the bits that are set."""
    return np.int64(_ctpop(np.uint64(word)))


@njit
def lowest(word: np.uint64) -> np.int64:
    """Return the index of the lowest set bit; 64 for an empty word."""
    return np.int64(_cttz(np.uint64(word)))


@njit
def highest(word: np.uint64) -> np.int64:
    """Return the index of the highest set bit; -1 for an empty word."""
    return np.int64(63) - np.int64(_ctlz(np.uint64(word)))


@njit
def nth_bit(word: np.uint64, n: int) -> np.int64:
    """Return the index of the n-th set bit, counted from 0 at the lowest; 64 if there are fewer."""
    for _ in range(n):
        word &= word - np.uint64(1)
    return lowest(word)


@njit
def put(words: NDArray[np.uint64], offset: int, value: np.uint64) -> None:
    """OR `value`, shifted up by `offset`, into packed words; it may straddle two, and bits beyond the last are lost."""
    word, shift = offset >> 6, np.uint64(offset & 63)
    words[word] |= value << shift
    if shift != np.uint64(0) and word + 1 < words.size:
        words[word + 1] |= value >> (np.uint64(64) - shift)


@njit
def put_thermometer(words: NDArray[np.uint64], offset: int, value: int) -> None:
    """Set the first `value` bits (0 to 63) from `offset` on, so that neighbouring numbers differ in one bit."""
    put(words, offset, bit(value) - np.uint64(1))


class BlockError(Exception):
    """Value beyond the end of the block in which it begins: offset, value, and whether it is put as a thermometer."""


def put_within(ends: NDArray[np.int64], write: Any) -> Any:
    """Return `put`, to be compiled, which raises BlockError; bit k is in a block that ends before bit `ends[k]`."""

    def put(words: Any, offset: Any, value: Any) -> None:
        room = ends[offset] - offset if 0 <= offset < ends.size else 0
        if room == 0 or (room < WORD and np.uint64(value) >> np.uint64(room) != np.uint64(0)):
            raise BlockError(offset, value, False)
        write(words, offset, value)

    return put


def thermometer_within(ends: NDArray[np.int64], write: Any) -> Any:
    """Return `put_thermometer`, as `put_within` returns `put`."""

    def put_thermometer(words: Any, offset: Any, value: Any) -> None:
        room = ends[offset] - offset if 0 <= offset < ends.size else 0
        if room == 0 or not 0 <= value <= room:
            raise BlockError(offset, value, True)
        write(words, offset, value)

    return put_thermometer


@njit(nogil=True)
def unpack_into(words: NDArray[np.uint64], out: Any) -> None:
    """Unpack rows `[n, words]` into `out`, `[n, bits]`, from compiled code and unchecked."""
    rows, bits = out.shape
    for row in range(rows):
        for k in range((bits + 63) >> 6):
            word = words[row, k]
            start = k << 6
            for j in range(min(WORD, bits - start)):
                out[row, start + j] = (word >> np.uint64(j)) & np.uint64(1)


def unpack(words: NDArray[np.uint64], bits: int, out: NDArray[Any] | None = None) -> NDArray[Any]:
    """Unpack rows `[n, words]` to `[n, bits]` of 0 and 1, as float32 or into `out`. Raises ValueError if too short."""
    if words.ndim != 2 or not 0 < bits <= words.shape[1] * WORD:
        raise ValueError(f"{bits} bits do not fit observations of shape {words.shape}")
    if out is None:
        out = np.empty((words.shape[0], bits), np.float32)
    unpack_into(words, out)
    return out


def words_for(bits: int) -> int:
    """Return the number of 64-bit words that hold `bits` bits."""
    return -(-bits // WORD)
