"""The application: which screen is shown, what all of them share, and that no table is left unsaved.

The menu comes first and waits for no more than it shows: tables, and Numba with them, are imported when one is opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen

from play.app.help import MENU, TABLE, WATCH, HelpScreen
from play.app.menu.menu import MenuScreen
from play.app.too_small import LEAST_HEIGHT, LEAST_WIDTH, TooSmall
from play.language import Language
from play.table.settings import PlaySettings

if TYPE_CHECKING:
    from play.app.table.table import TableScreen
    from play.spectate.watching import Watch
    from play.table.session import Session

_LEAVING_KEYS = ("ctrl+q", "ctrl+c")


class TableApp(App[int]):
    """Menu, tables, and what else there is to see. With keys of a command line `given`, a table is opened at once."""

    CSS_PATH = "app.tcss"
    TITLE = "busso"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_WIDTH, "-narrow"), (110, "-wide")]  # noqa: RUF012 - as in the base
    VERTICAL_BREAKPOINTS = [(0, "-low"), (LEAST_HEIGHT, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t,f2", "change_theme", show=False),
        Binding("question_mark,f1", "help", show=False),
        Binding("ctrl+q", "leave", show=False, priority=True),
        Binding("ctrl+c", "leave", show=False, priority=True),
    ]

    def __init__(self, settings: PlaySettings, given: set[str] | None = None) -> None:
        super().__init__()
        self.settings, self.language = settings, Language(settings.lang)
        self._given = given or set()
        self.menu = MenuScreen(settings, self.language)
        self.table: TableScreen | None = None  # the one at which somebody sits
        self.last_words: list[str] = []  # for the terminal, once the application is gone
        self.theme = "textual-dark"

    def on_mount(self) -> None:
        """Begin in the menu; a table that the command line named is opened above it."""
        self.screen_change_signal.subscribe(self, self._cover)
        self.push_screen(self.menu)
        if self._given:
            opens = self.open_table if self.settings.watch is None else self.open_watch
            opens(self.settings, self._given)

    def open_table(self, settings: PlaySettings, given: set[str]) -> None:
        """Open a table in the background, and sit down at it; what is wrong with it is said in the menu."""
        from play.app.opening import OpeningScreen

        self.push_screen(OpeningScreen(settings, given, self.language), self._sit_down)

    def _sit_down(self, found: Session | str | None) -> None:
        from play.table.session import Session

        if isinstance(found, Session):
            from play.app.screens import screen_for

            self.table = screen_for(found.table.game)(found, self.language, self.settings.pace)
            self.push_screen(self.table, self._stood_up)
        elif found is not None:
            self.menu.refuse(found)

    def open_watch(self, settings: PlaySettings, given: set[str]) -> None:
        """Look on at games, as `settings.watch` says; what is wrong with it is said in the menu."""
        from play.app.opening import OpeningScreen
        from play.spectate.watching import open_watch

        self.push_screen(OpeningScreen(settings, given, self.language, open_watch), self._look_on)

    def _look_on(self, found: Watch | str | None) -> None:
        from play.spectate.watching import Watch

        if isinstance(found, Watch):
            from play.app.spectate.watch_screen import watch_screen

            watch = found
            self.table = watch_screen(watch, self.language)
            self.push_screen(self.table, lambda words: self._stood_up(words) if watch.left else self._look_on(watch))
        elif found is not None:
            self.menu.refuse(found)

    def _stood_up(self, words: str | None) -> None:
        self.table = None
        if words:
            self.last_words = [words]
            self.notify(words, timeout=10, markup=False)

    def _cover(self, screen: Screen[object]) -> None:
        """Every screen has the line over it that is seen when the terminal is too small."""

        def cover() -> None:
            if screen.is_attached and not screen.query(TooSmall):
                screen.mount(TooSmall(self.language))

        screen.call_later(cover)

    async def on_event(self, event: events.Event) -> None:
        """Keys and clicks at what cannot be seen do nothing."""
        unseen = self.size.width < LEAST_WIDTH or self.size.height < LEAST_HEIGHT
        leaving = isinstance(event, events.Key) and event.key in _LEAVING_KEYS
        if leaving or not (unseen and isinstance(event, events.InputEvent)):
            await super().on_event(event)

    def action_help(self) -> None:
        """How it is played, and with which keys."""
        if self.table is not None and self.screen is self.table:
            from play.app.spectate.watch import Watching

            where = WATCH if isinstance(self.table, Watching) else TABLE
            self.push_screen(HelpScreen(self.language, where, self.table.table.game.name))
        elif self.screen is self.menu:
            self.push_screen(HelpScreen(self.language, MENU))

    def action_change_theme(self) -> None:
        """Light or dark."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def action_leave(self, unsaved: bool = False) -> None:
        """End, when whoever thinks has done; a table that is not over is saved, where it may not be left `unsaved`."""
        if self.table is not None:
            self.table.leave(lambda: self.exit(0), unsaved)
        else:
            self.exit(0)
