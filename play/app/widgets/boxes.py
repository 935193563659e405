"""Cards as boxes of characters."""

from collections.abc import Sequence

_ROW = 6  # cards per row


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


def beside(*blocks: Sequence[str], gap: int = 2) -> list[str]:
    """Place blocks of lines side by side, each as wide as its longest line."""
    height = max(map(len, blocks))
    padded = []
    for block in blocks:
        width = max(map(len, block), default=0)
        padded.append([line.ljust(width) for line in [*block, *[""] * (height - len(block))]])
    return [(" " * gap).join(lines).rstrip() for lines in zip(*padded, strict=True)]
