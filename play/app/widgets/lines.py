"""Lines of text that are drawn when they change, not whenever the table is shown."""

from __future__ import annotations

from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static


class Lines(Static):
    """A text that is set often and changes seldom: a new layout measures and draws the whole screen."""

    def update(self, content: VisualType = "", *, layout: bool = True) -> None:
        """Show this content. If every line is as long as before and none is wrapped, all places stay as they are."""
        before = self.content
        if _same(before, content):
            return
        lengths = _lengths(content)
        moves = lengths != _lengths(before) or max(lengths) > self.content_size.width
        super().update(content, layout=layout and moves)


def _same(one: VisualType, other: VisualType) -> bool:
    if isinstance(one, Content) and isinstance(other, Content):
        return one.is_same(other)  # `==` compares the letters alone
    return type(one) is type(other) and one == other


def _lengths(content: VisualType) -> list[int]:
    """The width of each line, in cells."""
    return [Content(line).cell_length for line in str(content).split("\n")]
