"""The menu: what is played, with whom."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from command.compose import compose
from play.app.keys import Key, KeyBar
from play.language import Language
from play.settings import PlaySettings

if TYPE_CHECKING:
    from play.app.application import TableApp

GAMES = ("tressette", "spike", "blackjack", "sette_mezzo")


class MenuScreen(Screen[None]):
    """Which game."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,escape", "leave", show=False)]

    def __init__(self, settings: PlaySettings, language: Language) -> None:
        super().__init__()
        self._settings, self._language = settings, language

    def compose(self) -> ComposeResult:
        """Games."""
        yield Static("busso", id="title", markup=False)
        yield OptionList(*(Option(self._language.say(f"game.{name}"), id=name) for name in GAMES))
        yield KeyBar([Key("q", "leave", "end")], self._language)

    def action_leave(self) -> None:
        """Good-bye."""
        cast("TableApp", self.app).action_leave()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Sit down."""
        overrides = [f"game={event.option_id}", f"lang={self._settings.lang}", f"pace={self._settings.pace}"]
        cast("TableApp", self.app).open_table(compose(PlaySettings, "play", overrides), {"game"})
