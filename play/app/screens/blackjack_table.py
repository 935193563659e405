"""The value table as a heatmap: signs and digits say what the colours say."""

from __future__ import annotations

from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.strip import Strip
from textual.widget import Widget

from play.blackjack_lab.value_table import COLUMNS, Block

_LABEL = 4  # columns of the row labels
_NARROWEST, _WIDEST = 3, 6  # columns of a cell
_SHADES = 16  # strengths of a colour
_DEEPEST = 0.85
_BOLD = Style(bold=True)


class ValueTable(Widget):
    """The hard or the soft sums, as large as there is room for: tall cells have a second line.

    The decision of the game in play is underlined and in reverse. Drawn line by line, as it changes all the time.
    """

    def __init__(self, title: str, id: str) -> None:  # noqa: A002 - as Textual calls it
        super().__init__(id=id)
        self._title = title
        self.first: Block | None = None  # what is shown
        self._second: Block | None = None
        self._here: tuple[int, int] | None = None
        self._styles: dict[tuple[str, int, bool], Style] = {}

    def show(self, first: Block, second: Block, here: tuple[int, int] | None) -> None:
        """Show these cells, in tall cells with the second ones below; `here` is the row and column in play."""
        if (first, second, here) != (self.first, self._second, self._here):
            self.first, self._second, self._here = first, second, here
            self.refresh()

    def render_line(self, y: int) -> Strip:
        """The heads of the columns, and then one or two lines for each sum."""
        if self.first is None or self._second is None:
            return Strip.blank(self.size.width, self.rich_style)
        width = max(_NARROWEST, min(_WIDEST, (self.size.width - _LABEL) // len(COLUMNS)))
        ground = self.rich_style
        if y == 0:
            heads = "".join(f"{column:>3}".center(width) for column in COLUMNS)
            segments = [Segment(f"{self._title:<{_LABEL}}{heads}", ground + _BOLD)]
        else:
            tall = self.size.height >= 2 * len(self.first.sums) + 1
            row, second = divmod(y - 1, 2) if tall else (y - 1, 0)
            segments = self._row(row, bool(second), width, ground)
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def _row(self, row: int, second: bool, width: int, ground: Style) -> list[Segment]:
        assert self.first is not None and self._second is not None
        if row >= len(self.first.sums):
            return []
        label = " " * _LABEL if second else f"{self.first.sums[row]:>{_LABEL - 1}} "
        texts = (self._second if second else self.first).cells[row]
        # Both lines of a cell have the colour of the first.
        shades = self.first.cells[row]
        cells = [
            Segment(text.text.center(width), self._style(shade.shade, (row, column) == self._here))
            for column, (text, shade) in enumerate(zip(texts, shades, strict=True))
        ]
        return [Segment(label, ground + _BOLD), *cells]

    def _style(self, shade: float, here: bool) -> Style:
        key = (self.app.theme, round(max(-1.0, min(1.0, shade)) * _SHADES), here)
        if key not in self._styles:
            variables = self.app.theme_variables
            tint = Color.parse(variables["primary" if key[1] > 0 else "warning"])
            background = Color.parse(variables["surface"]).blend(tint, abs(key[1]) / _SHADES * _DEEPEST)
            foreground = background + background.get_contrast_text(1.0)
            style = Style(color=foreground.rich_color, bgcolor=background.rich_color)
            self._styles[key] = style + Style(bold=here, underline=here, reverse=here)
        return self._styles[key]
