"""The application. Tables, and Numba with them, are imported when one is opened, so that the menu comes at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.theme import BUILTIN_THEMES

from busso.base.errors import UserError
from busso.base.system import heard
from busso.command.settings.compose import compose
from busso.command.settings.quoting import given as given_by
from busso.play.app.menu import MenuScreen
from busso.play.app.too_small import LEAST_HEIGHT, LEAST_WIDTH, TooSmall
from busso.play.app.widgets.help import MENU, HelpScreen
from busso.play.language import Language
from busso.play.table.settings import Given, PlaySettings

if TYPE_CHECKING:
    from busso.play.app.board import BoardScreen
    from busso.play.app.opening import Opened

_LEAVING_KEYS = ("ctrl+q", "ctrl+c")
# Keys that say how to play, not what: with these alone the application starts in the menu.
_HOW = {"ui", "lang", "pace", "record", "hint"}
_SECONDS_WITHOUT_TERMINAL = 5.0  # at most, until the process ends


# Textual's own, with contrasts of 4.5 to 1 or more for text (WCAG AA), and of 3 to 1 for borders.
_THEMES = (
    replace(BUILTIN_THEMES["textual-dark"], name="dark", variables={"block-cursor-background": "#0065BE"}),
    replace(BUILTIN_THEMES["textual-light"], name="light", warning="#9A5C00", accent="#9A5C00"),
)


class TableApp(App[int]):
    """Application with menu, tables and games to watch; command-line overrides `given` open a table at once."""

    CSS_PATH = sorted(Path(__file__).parent.rglob("[!.]*.tcss"))  # app.tcss is the first
    TITLE = "busso"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (LEAST_WIDTH, "-narrow"), (110, "-wide")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-low"), (LEAST_HEIGHT, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+t,f2", "change_theme", show=False),
        Binding("question_mark,f1", "help", show=False),
        Binding("ctrl+q,ctrl+c", "leave", show=False, priority=True),
    ]

    def __init__(self, settings: PlaySettings, given: Given | None = None) -> None:
        super().__init__()
        self.settings = settings
        self._given = given or {}
        self.menu = MenuScreen(settings, Language(settings.lang), self._chosen)
        self.table: BoardScreen | None = None  # the current table, played or watched
        self.last_words = ""  # for the terminal, after the application has ended
        for theme in _THEMES:
            self.register_theme(theme)
        self.theme = "dark"

    @property
    def language(self) -> Language:
        """The language chosen in the menu."""
        return self.menu.language

    def on_mount(self) -> None:
        """Open the menu, and above it a table that the command line named."""
        self.screen_change_signal.subscribe(self, self._cover)
        self.push_screen(self.menu)
        if self._given:
            self._open(lambda: self.settings, self._given)

    def _chosen(self, overrides: list[str]) -> None:
        if self.screen is self.menu:
            self._open(partial(compose, PlaySettings, "play", overrides), given_by(overrides))

    def _open(self, settings: Callable[[], PlaySettings], given: Given) -> None:
        """Open a table in the background and show it; the menu shows any error."""
        from busso.play.app.opening import OpeningScreen

        def opened(found: Opened | str | None) -> None:
            if isinstance(found, str):
                self.menu.refuse(found)
            elif found is not None:
                self._show(found)

        self.push_screen(OpeningScreen(settings, given, self.language), opened)

    def _show(self, opened: Opened) -> None:
        from busso.play.app.opening import screen_of

        def left(words: str | None) -> None:
            self.table = None
            if words is None:  # the next game to watch needs another board
                self._show(opened)
            elif words:
                self.last_words = words
                self.notify(words, timeout=10, markup=False)

        self.table = screen_of(opened, self.language, self.settings.pace)
        self.push_screen(self.table, left)

    def _cover(self, screen: Screen[Any]) -> None:
        """Cover every screen with a notice for when the terminal is too small."""

        def cover() -> None:
            if screen.is_attached and not screen.query(TooSmall):
                screen.mount(TooSmall(self.language))

        screen.call_later(cover)

    async def on_event(self, event: events.Event) -> None:
        """Ignore keys and clicks while the terminal is too small to show their targets."""
        unseen = self.size.width < LEAST_WIDTH or self.size.height < LEAST_HEIGHT
        leaving = isinstance(event, events.Key) and event.key in _LEAVING_KEYS
        if leaving or not (unseen and isinstance(event, events.InputEvent)):
            await super().on_event(event)

    def action_help(self) -> None:
        if self.table is not None and self.screen is self.table:
            self.push_screen(HelpScreen(self.language, self.table.HELP_KEYS, self.table.table.game.shown_as))
        elif self.screen is self.menu:
            self.push_screen(HelpScreen(self.language, MENU))

    def action_change_theme(self) -> None:
        self.theme = "light" if self.current_theme.dark else "dark"

    def action_leave(self, unsaved: bool = False) -> None:
        """Exit when no computation is running; an unfinished table is saved, unless it may stay `unsaved`."""
        if self.table is not None:
            self.table.leave(lambda: self.exit(0), unsaved)
        else:
            self.exit(0)


def run_app(settings: PlaySettings, given: Given) -> int:
    """Run to the end, saving an open table; return the exit code. Raises UserError without a terminal."""
    if not (sys.stdin and sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("ui", "app needs a terminal for input and output", "use ui=plain for pipes")
    app = TableApp(settings, given if given.keys() - _HOW else {})
    code = asyncio.run(_run(app))
    if app.last_words:
        print(app.last_words)
    return code


async def _run(app: TableApp) -> int:
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, app.action_leave, True)

    def hang_up(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(app.action_leave, True)
        watch = threading.Timer(_SECONDS_WITHOUT_TERMINAL, _end_without_terminal, (app,))
        watch.daemon = True
        watch.start()

    # Not a loop handler: Textual may block for ever writing to a terminal that is gone, and the loop with it.
    for number in heard((signal.SIGHUP,)):
        signal.signal(number, hang_up)
    try:
        await app.run_async()
    finally:
        if app.table is not None:  # it failed: save it
            app.last_words = app.table.saved_words()
    return app.return_code or 0


def _end_without_terminal(app: TableApp) -> None:
    """Save the table and end the process immediately."""
    with suppress(OSError):
        if app.table is not None:
            app.table.saved_words()
    os._exit(1)
