"""Lines of text that are drawn only when they change."""

from textual.content import Content
from textual.visual import VisualType
from textual.widgets import Static


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
