"""Any game: what the seat knows as the line mode says it, and the legal actions as buttons."""

from __future__ import annotations

from typing import Any

from textual.app import ComposeResult
from textual.widgets import Static

from play.app.table.table import TableScreen
from play.views import page


class GameScreen(TableScreen):
    """A table of any game."""

    def compose_board(self) -> ComposeResult:
        """Lines of text."""
        yield Static(id="lines", markup=False)

    def draw(self, seen: Any) -> None:
        """What the seat may see."""
        lines = page(self.language, self.session.table.game.name, seen, details=True)
        self.query_one("#lines", Static).update("\n".join(lines))
