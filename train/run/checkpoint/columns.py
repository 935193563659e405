"""Columns too large to be copied, those of the replay buffer: saved and loaded piece by piece."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import torch
from torch import Tensor

Place = tuple[str | int, ...]  # of something in nested dictionaries and lists

PIECE_BYTES = 2 << 20  # large enough to be written fast, small enough that waiting for one is short
_DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in (torch.uint8, torch.int32, torch.int64, torch.float32)}


@dataclass(frozen=True)
class RowType:
    """Type and shape of one row of a column."""

    dtype: torch.dtype
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Bytes of a row."""
        return self.dtype.itemsize * prod(self.shape)


class Columns(ABC):
    """Tensors of as many rows, `kinds` of them, handed over in pieces of at most `piece` rows.

    The first piece begins with row `first`; after the last row come those before `first`.
    """

    def __init__(self, kinds: Sequence[RowType], rows: int, first: int, piece: int) -> None:
        self.kinds, self.rows, self.first, self.piece = tuple(kinds), rows, first, piece

    @abstractmethod
    def written(self, beside: Path) -> dict[str, Any]:
        """Have all rows on disk, in files of a folder in `beside`; describe them, as JSON has it. Raises OSError."""

    @abstractmethod
    def pieces(self) -> Iterator[tuple[int, list[Tensor]]]:
        """The first row of each piece and its part of every column, on the CPU; valid until the next is asked for."""

    def held(self, beside: Path) -> Columns:
        """The same columns, which do not change until `release`; for a checkpoint in folder `beside`."""
        return self

    def release(self) -> None:  # noqa: B027 - those on disk have nothing to let go
        """Let the columns that `held` returned change again."""

    def spans(self) -> Iterator[tuple[int, int]]:
        """First row and end of each piece."""
        for begin, end in ((self.first, self.rows), (0, self.first)):
            for start in range(begin, end, self.piece):
                yield start, min(start + self.piece, end)


def piece_rows(row_bytes: int) -> int:
    """How many rows a piece has."""
    return max(1, PIECE_BYTES // max(1, row_bytes))


def read_into(file: IO[bytes], into: memoryview) -> None:
    """Fill the memory from the file. Raises ValueError when the file ends before."""
    while into:
        count = file.readinto(into)  # type: ignore[attr-defined]
        if not count:
            raise ValueError("the file ends before its columns do")
        into = into[count:]


def as_bytes(values: Tensor) -> memoryview:
    """The memory of a contiguous CPU tensor, not a copy."""
    return values.numpy().data.cast("B")


def without_columns(state: Any, columns: dict[Place, Columns], place: Place = ()) -> Any:
    """The state with None for its columns, which are put into `columns` under the places that they have in it."""
    if isinstance(state, Columns):
        columns[place] = state
        return None
    if isinstance(state, dict):
        return {key: without_columns(item, columns, (*place, key)) for key, item in state.items()}
    if isinstance(state, list | tuple):
        return [without_columns(item, columns, (*place, index)) for index, item in enumerate(state)]
    return state


def put(state: Any, place: Place, columns: object) -> None:
    """Put the columns back where they were taken out."""
    for key in place[:-1]:
        state = state[key]
    state[place[-1]] = columns


def described(columns: Columns) -> dict[str, Any]:
    """All that `kinds_of` needs, as JSON has it."""
    kinds = [[str(kind.dtype).removeprefix("torch."), list(kind.shape)] for kind in columns.kinds]
    return {"kinds": kinds, "rows": columns.rows, "first": columns.first, "piece": columns.piece}


def kinds_of(description: dict[str, Any]) -> tuple[list[RowType], int, int, int]:
    """Kinds, rows, first and piece as `described`. Raises ValueError when they cannot be."""
    kinds = [RowType(_DTYPES[name], tuple(shape)) for name, shape in description["kinds"]]
    rows, first, piece = (description[key] for key in ("rows", "first", "piece"))
    numbers = [rows, first, piece, *(size for kind in kinds for size in kind.shape)]
    if not all(type(number) is int and number >= 0 for number in numbers) or first > rows or piece < 1:
        raise ValueError("its columns have impossible numbers")
    return kinds, rows, first, piece
