"""Lines to be read above a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from play.app.keys import Key, KeyBar
from play.language import Language


class LinesScreen(ModalScreen[None]):
    """Lines with a title, the last of them in sight."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,escape,enter,g", "back", show=False)]

    def __init__(self, title: str, lines: Sequence[str], language: Language) -> None:
        super().__init__()
        self._title, self._lines, self._language = title, lines, language

    def compose(self) -> ComposeResult:
        """Title and lines."""
        yield Static(self._title, id="title", markup=False)
        with VerticalScroll() as scroll:
            yield Static("\n".join(self._lines), markup=False)
        self._scroll = scroll
        yield KeyBar([Key("q", "back", "back")], self._language)

    def on_mount(self) -> None:
        """To the end."""
        self._scroll.scroll_end(animate=False)

    def action_back(self) -> None:
        """Back to the table."""
        self.dismiss(None)
