"""Help: keys, rules of the game, notation of its cards."""

from collections.abc import Iterator
from itertools import chain
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import HorizontalGroup, VerticalScroll
from textual.content import Content
from textual.widget import Widget
from textual.widgets import Static

from busso.play.app.widgets.keys import Dialog, Key, KeyBar
from busso.play.language import Language

MENU, TABLE, WATCH = "menu", "table", "watch"


class HelpScreen(Dialog[None]):
    """Help screen: the keys of the menu, a table or a spectator, by `where`, and the rules of `game`."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("q,escape,enter,question_mark,f1", "back", show=False)]
    KEYS: ClassVar[tuple[Key, ...]] = (Key("Esc", "back", "menu_key.back"),)

    def __init__(self, language: Language, where: str, game: str = "") -> None:
        super().__init__()
        self.language = language
        self._where, self._game = where, game

    def compose(self) -> ComposeResult:
        with VerticalScroll(id="help"):
            for number, (title, lines) in enumerate(self._parts()):
                yield Static(Content.styled(title, "bold"), classes="help-title" if number else "")
                yield from lines
        yield KeyBar(self.KEYS, self.language)

    def _parts(self) -> Iterator[tuple[str, Iterator[Widget]]]:
        say = self.language.say
        game = self.language.texts.get(f"game.{self._game}")
        if game is not None:
            yield say("help_screen.how", game=game), self._lines(f"help_screen.{self._game}.")
        own = self._keys(self._game) if self._where == TABLE else iter(())
        yield say("help_screen.keys"), chain(own, self._keys(self._where))
        if game is not None:
            yield say("help_screen.cards"), self._lines(f"help_screen.read.{self._game}.")
        yield say("help_screen.everywhere"), self._keys("everywhere")

    def _lines(self, prefix: str) -> Iterator[Widget]:
        """Yield the texts under a key, one per paragraph."""
        for text in self.language.under(prefix):
            yield Static(text, markup=False)

    def _keys(self, where: str) -> Iterator[Widget]:
        """Yield rows from the texts `key: effect` under a key."""
        for text in self.language.under(f"help_screen.key.{where}."):
            key, _, does = text.partition(": ")
            yield HorizontalGroup(
                Static(Content.styled(key, "bold"), classes="help-key"), Static(does, markup=False, classes="help-does")
            )
