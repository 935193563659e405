"""The value table as a heatmap: signs and digits say what the colours say."""

from __future__ import annotations

from textual.color import Color
from textual.content import Content
from textual.style import Style
from textual.widget import Widget

from play.value_table import COLUMNS, Block, Cell

_LABEL = 4  # columns of the row labels
_NARROWEST, _WIDEST = 3, 6  # columns of a cell


class ValueTable(Widget):
    """The hard or the soft sums, as large as there is room for: tall cells have a second line.

    The decision of the game in play is underlined and in reverse.
    """

    def __init__(self, title: str, id: str) -> None:  # noqa: A002 - as Textual calls it
        super().__init__(id=id)
        self._title = title
        self.first: Block | None = None  # what is shown
        self._second: Block | None = None
        self._here: tuple[int, int] | None = None

    def show(self, first: Block, second: Block, here: tuple[int, int] | None) -> None:
        """Show these cells, in tall cells with the second ones below; `here` is the row and column in play."""
        if (first, second, here) != (self.first, self._second, self._here):
            self.first, self._second, self._here = first, second, here
            self.refresh()

    def render(self) -> Content:
        """All lines."""
        if self.first is None or self._second is None:
            return Content("")
        width = max(_NARROWEST, min(_WIDEST, (self.size.width - _LABEL) // len(COLUMNS)))
        tall = self.size.height >= 2 * len(self.first.sums) + 1
        bold = Style(bold=True)
        parts: list[str | Content | tuple[str, str | Style]] = [(f"{self._title:<{_LABEL}}", bold)]
        parts += [(f"{column:>{3}}".center(width), bold) for column in COLUMNS]
        for row, total in enumerate(self.first.sums):
            lines = [self.first.cells[row], *([self._second.cells[row]] if tall else [])]
            for number, cells in enumerate(lines):
                label = f"{total:>{_LABEL - 1}} " if number == 0 else " " * _LABEL
                parts.append((f"\n{label}", bold))
                # Both lines of a cell have the colour of the first.
                shades = self.first.cells[row]
                parts += [
                    (cell.text.center(width), self._style(shades[column], (row, column) == self._here))
                    for column, cell in enumerate(cells)
                ]
        return Content.assemble(*parts)

    def _style(self, cell: Cell, here: bool) -> Style:
        variables = self.app.theme_variables
        ground = Color.parse(variables["surface"])
        tint = Color.parse(variables["primary" if cell.shade > 0 else "warning"])
        background = ground.blend(tint, min(1.0, abs(cell.shade)) * 0.85)
        foreground = background.get_contrast_text(1.0)
        return Style(background=background, foreground=foreground, bold=here, underline=here, reverse=here)
