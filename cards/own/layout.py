"""Layout of an observation: offsets for compiled code, and the meaning of the bits for everything else."""

import keyword
from collections import namedtuple
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from busso.base.errors import InputError

_TAKEN = ("bits", "blocks", "count", "index", "legal", "names", "random", "seat")  # of `Layout` and `Seen`
_MOST_IN_NUMBER = 63  # bits that `put_thermometer` sets
_GROUP = 8  # bits that are shown together
NOTHING = "-"


@dataclass(frozen=True)
class Number:
    """Block for a number from 0 to `most`, written as a thermometer by `put_thermometer`."""

    most: int


def number(most: int) -> Number:
    """Return a block of a `Layout` for a number from 0 to `most`, written by `put_thermometer`."""
    if not 0 < most <= _MOST_IN_NUMBER:
        raise InputError("number", f"expected 1 to {_MOST_IN_NUMBER}, not {most!r}")
    return Number(most)


@dataclass(frozen=True)
class ObservedBlock:
    """Bits of an observation with one meaning. `things` are the names of the single bits, if they have names."""

    name: str
    offset: int
    bits: int
    things: tuple[str, ...] | None = None
    is_number: bool = False

    @property
    def label(self) -> str:
        """Name in words."""
        return self.name.replace("_", " ")

    def set_bits(self, words: NDArray[np.uint64]) -> list[int]:
        """Return the numbers of the bits that are set in a packed observation, from 0 in this block."""
        places = range(self.offset, self.offset + self.bits)
        return [place - self.offset for place in places if int(words[place >> 6]) >> (place & 63) & 1]

    def value(self, words: NDArray[np.uint64]) -> int | list[int]:
        """Return the number in the block, or the numbers of its set bits."""
        found = self.set_bits(words)
        return len(found) if self.is_number else found

    def texts(self, words: NDArray[np.uint64], actions: Sequence[str]) -> tuple[str, ...]:
        """Format the value: a number, the names of the set bits, or the bits themselves in groups of eight."""
        things = self.things or (actions if self.bits == len(actions) else None)
        if self.is_number:
            return (str(self.value(words)),)
        found = self.set_bits(words)
        if things is not None:
            return tuple(things[each] for each in found) or (NOTHING,)
        bits = "".join(str(int(each in found)) for each in range(self.bits))
        return tuple(bits[k : k + _GROUP] for k in range(0, self.bits, _GROUP))

    def says(self, actions: Sequence[str]) -> str:
        """Describe the content of the block, for a table."""
        if self.is_number:
            return f"0 to {self.bits}, thermometer"
        if self.things is not None:
            return f"one of {', '.join(self.things)}"
        return "actions" if self.bits == len(actions) else f"{self.bits} bits"


class Layout:
    """Consecutive blocks of an observation: `Layout(hand=40, tricks=number(10), trumps=["denari", ...])`.

    A named tuple of the offsets, which are constants in compiled code: `put(words, SEES.hand, bits)`. A block is a
    number of bits, a `number`, or a list of names with one bit each. `bits` is the total width, `blocks` has an
    `ObservedBlock` for each block.
    """

    __slots__ = ()
    bits: int
    blocks: tuple[ObservedBlock, ...]

    def __new__(cls, **blocks: int | Number | Sequence[str]) -> Any:
        """Make the tuple. Raises InputError for an invalid name or size."""
        found, offset = [], 0
        for name, size in blocks.items():
            found.append(_block(name, offset, size))
            offset += found[-1].bits
        if not found:
            raise InputError("Layout", "no blocks", "write Layout(hand=40, ...)")
        offsets = namedtuple("Layout", blocks)  # type: ignore[misc]
        fields = {"__slots__": (), "bits": offset, "blocks": tuple(found), "__module__": __name__}
        made: Any = type("Layout", (offsets, Layout), fields)
        return offsets.__new__(made, *(block.offset for block in found))


def misfit(layout: Layout, offset: int, value: int, thermometer: bool) -> str:
    """Describe a value that does not fit the block in which it begins."""
    for block in layout.blocks:
        room = block.offset + block.bits - offset
        if block.offset <= offset and room > 0:
            if thermometer:
                return f"{value} is written to the block `{block.name}`, which holds 0 to {room}"
            place = (value % 2**64).bit_length() - 1 + offset - block.offset
            return f"bit {place} is set in the block `{block.name}`, which has {block.bits}"
    return f"{offset} is not the offset of a block of the layout"


def _block(name: str, offset: int, size: int | Number | Sequence[str]) -> ObservedBlock:
    if name in _TAKEN or name.startswith("_") or keyword.iskeyword(name):
        raise InputError(f"Layout: {name}", "reserved name", "rename the block")
    if isinstance(size, Number):
        return ObservedBlock(name, offset, size.most, is_number=True)
    if isinstance(size, Sequence) and not isinstance(size, str) and size and all(isinstance(x, str) for x in size):
        return ObservedBlock(name, offset, len(size), tuple(size))
    if isinstance(size, int) and not isinstance(size, bool) and size > 0:
        return ObservedBlock(name, offset, size)
    raise InputError(f"Layout: {name}", f"expected a number of bits, number(MOST) or a list of names, not {size!r}")


def table_of(layout: Layout, actions: Sequence[str] = ()) -> str:
    """Format the layout as a Markdown table, for a page or a docstring."""
    lines = ["| bits | block | holds |", "|---|---|---|"]
    for block in layout.blocks:
        last = block.offset + block.bits - 1
        places = f"{block.offset}-{last}" if block.bits > 1 else str(last)
        lines.append(f"| {places} | {block.label} | {block.says(actions)} |")
    return "\n".join(lines)
