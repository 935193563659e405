"""Lines of text that are drawn only when they change, and cards as boxes of characters."""

from collections.abc import Sequence

from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static

_ROW = 6  # cards per row


class Lines(Static):
    """Text that is set often but changes seldom, since a new layout measures and draws the whole screen."""

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show this content, without a new layout if all line lengths stay the same and none is wrapped."""
        before = self.content
        if _same(before, content):
            return
        lengths = _lengths(content)
        moves = lengths != _lengths(before) or max(lengths) > self.content_size.width
        super().update(content, layout=layout and moves)


def _same(one: VisualType, other: VisualType) -> bool:
    if isinstance(one, Content) and isinstance(other, Content):
        return one.is_same(other)  # `==` compares only the characters
    return type(one) is type(other) and one == other


def _lengths(content: VisualType) -> list[int]:
    """Return the width of each line, in cells."""
    return [Content(line).cell_length for line in str(content).split("\n")]


def boxes(cards: Sequence[str], tall: bool = False) -> list[str]:
    """Draw cards of up to three characters, six per row, three lines high, or five if `tall`."""
    rows = [cards[first : first + _ROW] for first in range(0, len(cards), _ROW)]
    return [line for row in rows for line in _row(row, tall)]


def _row(cards: Sequence[str], tall: bool) -> list[str]:
    width = 7 if tall else 4
    empty = "│" + " " * width + "│"
    middle = "".join(f"│{card:^{width}}│" for card in cards)
    rows = [middle] if not tall else [empty * len(cards), middle, empty * len(cards)]
    return [("┌" + "─" * width + "┐") * len(cards), *rows, ("└" + "─" * width + "┘") * len(cards)]


def beside(*blocks: Sequence[str]) -> list[str]:
    """Place blocks of lines side by side, each as wide as its longest line."""
    height = max(map(len, blocks))
    padded = []
    for block in blocks:
        width = max(map(len, block), default=0)
        padded.append([line.ljust(width) for line in [*block, *[""] * (height - len(block))]])
    return ["  ".join(lines).rstrip() for lines in zip(*padded, strict=True)]
