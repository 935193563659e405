"""List of the saved tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from busso.command.terminal.visible import visible
from busso.play.language import Language
from busso.play.players import HUMAN

if TYPE_CHECKING:
    from busso.play.table.saves import SavedTable


class SavesList(OptionList):
    """List of saved tables, the latest first, a few lines each, in the order of `tables`."""

    def __init__(self, language: Language) -> None:
        super().__init__(id="saves")
        self._language = language
        self.tables: list[SavedTable] = []

    def show(self, tables: list[SavedTable]) -> None:
        """Show these tables."""
        place, self.tables = self.highlighted or 0, tables
        self.clear_options()
        if not tables:
            self.add_option(Option(Content(self._language.say("menu.no_saved")), disabled=True))
            return
        self.add_options(Option(Content("\n".join(map(visible, self._described(table))))) for table in tables)
        self.highlighted = min(place, len(tables) - 1)

    def _described(self, table: SavedTable) -> list[str]:
        say, when = self._language.say, f"{table.written:%Y-%m-%d %H:%M}"
        if table.broken:
            return [say("menu.saved_broken", file=table.path), say("menu.saved_broken_when", when=when)]
        saved, score = table.saved, table.saved["score"]
        seats = (say("app.you") if name == HUMAN else name for name in saved["seats"])
        stands = [] if saved["match"] is None else [say("menu.saved_match", score=saved["match"])]
        stands.append(say("menu.saved_place", hands=len(saved["hands"]), moves=len(saved["hands"][-1])))
        if score["games"]:
            stands.append(say("menu.saved_score", games=score["games"], wins=score["wins"]))
        game = self._language.game(saved["game"]["name"])
        return [f"{game} · {', '.join(seats)}", " · ".join(stands), f"{when} · {table.path}"]
