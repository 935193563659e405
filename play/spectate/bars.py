"""What actions are worth, as bars of text that need no colour, in columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluate.review.advisers import Worth
from play.table.speech import value_text

_EIGHTHS = " ▏▎▍▌▋▊▉█"
_LEAST, _MOST = 6, 24  # cells of a bar
NEXT = "▸"  # before the action that is played next


def bars(
    worths: Sequence[Worth], unit: str, name: Callable[[int], str], following: int | None, width: int
) -> list[str]:
    """A line for each row of actions, the best first and down the columns; the best has a full bar, the worst none.

    The action that is `following`, if that is known, has a mark before it.
    """
    if not worths:
        return []
    names = [name(each.action) for each in worths]
    values = [value_text(each.value, unit) for each in worths]
    texts = [
        f"{NEXT if each.action == following else ' '}{called:<{max(map(len, names))}} {value:>{max(map(len, values))}} "
        for each, called, value in zip(worths, names, values, strict=True)
    ]
    columns = min(len(texts), max(1, width // (len(texts[0]) + _LEAST + 1)))
    rows = -(-len(texts) // columns)
    columns = -(-len(texts) // rows)
    cells = min(_MOST, max(_LEAST, width // columns - len(texts[0]) - 1))
    shown = [text + _bar(share, cells) for text, share in zip(texts, _shares(worths), strict=True)]
    return [" ".join(shown[row::rows]).rstrip() for row in range(rows)]


def _shares(worths: Sequence[Worth]) -> list[float]:
    """Where each value lies between the worst, 0, and the best, 1."""
    known = [each.value for each in worths if each.value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    if high - low < 1e-9:
        return [float(each.value is not None) for each in worths]
    return [0.0 if each.value is None else (each.value - low) / (high - low) for each in worths]


def _bar(share: float, cells: int) -> str:
    eighths = max(1, round(share * cells * 8))  # a sliver at least, so that one sees where bars begin
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(cells)
