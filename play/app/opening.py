"""Opening a table while rules compile and players load, which takes seconds."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Middle
from textual.screen import ModalScreen
from textual.widgets import LoadingIndicator, Static

from busso.base.errors import UserError
from busso.play.app.board import BoardScreen
from busso.play.app.screens import screen_for
from busso.play.app.watch import WatchScreen
from busso.play.language import Language
from busso.play.spectate import WatchedGames, open_table
from busso.play.table.session import Session
from busso.play.table.settings import Given, PlaySettings
from busso.play.table.speech import one_line

Opened = Session | WatchedGames


def screen_of(opened: Opened, language: Language, pace: float) -> BoardScreen:
    """Return the screen for playing a session or watching games."""
    if isinstance(opened, WatchedGames):
        return WatchScreen(opened, language)
    return screen_for(opened.table.game)(opened, language, pace)


class OpeningScreen(ModalScreen[Opened | str]):
    """Screen that composes settings and opens a table in a thread; its result is the table or a one-line error."""

    def __init__(self, settings: Callable[[], PlaySettings], given: Given, language: Language) -> None:
        super().__init__()
        self._settings, self._given, self._language = settings, given, language

    def compose(self) -> ComposeResult:
        with Middle():
            yield Static(self._language.say("app.opening"), id="opening", markup=False)
            yield LoadingIndicator()

    def on_mount(self) -> None:
        # Not a worker: the application waits for workers when it exits, and a large file takes long to read.
        threading.Thread(target=self._work, args=(self.app,), daemon=True).start()

    def _work(self, app: App[Any]) -> None:
        try:
            opened: Any = open_table(self._settings(), self._given)
        except (UserError, OSError) as error:
            opened = one_line(error)
        except Exception as error:  # a bug: it ends the application, as anywhere else
            opened = error
        with suppress(RuntimeError):  # the application has ended
            app.call_from_thread(self._opened, opened)

    def _opened(self, opened: Any) -> None:
        if isinstance(opened, Exception):
            raise opened
        self.dismiss(opened)
