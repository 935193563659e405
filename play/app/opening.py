"""While a table is opened: rules are compiled and players loaded, which takes seconds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from textual.app import App, ComposeResult
from textual.containers import Middle
from textual.screen import ModalScreen
from textual.widgets import LoadingIndicator, Static

from busso.command.errors import UserError
from busso.play.app.screens import screen_for
from busso.play.app.spectate.watch import WatchScreen
from busso.play.app.table.board_screen import BoardScreen
from busso.play.language import Language
from busso.play.spectate.watching import WatchedGames, open_watch
from busso.play.table.opening import open_session, warm_up
from busso.play.table.session import Session
from busso.play.table.settings import Given, PlaySettings

Opened = Session | WatchedGames


def screen_of(opened: Opened, language: Language, pace: float) -> BoardScreen:
    """The screen on which a session is played, or games are looked on at."""
    if isinstance(opened, WatchedGames):
        return WatchScreen(opened, language)
    return screen_for(opened.table.game)(opened, language, pace)


def _open(settings: PlaySettings, given: Given) -> Opened:
    if settings.watch is not None:
        return open_watch(settings, given)
    session = open_session(settings, given)
    warm_up(session)  # the first moves need not wait for what is compiled
    threading.Thread(target=session.coach.prepare).start()  # nor the first hint for PyTorch, two seconds
    return session


class OpeningScreen(ModalScreen[Opened | str]):
    """Opens what the settings say in a thread, where they are composed, too.

    Its result is what was opened, or the reason why there is nothing, one line.
    """

    def __init__(self, settings: Callable[[], PlaySettings], given: Given, language: Language) -> None:
        super().__init__()
        self._settings, self._given, self._language = settings, given, language

    def compose(self) -> ComposeResult:
        with Middle():
            yield Static(self._language.say("app.opening"), id="opening", markup=False)
            yield LoadingIndicator()

    def on_mount(self) -> None:
        # No worker: the application waits for those when it ends, and a large file takes long to read.
        threading.Thread(target=self._work, args=(self.app,), daemon=True).start()

    def _work(self, app: App[Any]) -> None:
        try:
            opened: Any = _open(self._settings(), self._given)
        except UserError as error:
            opened = str(error)
        except OSError as error:
            opened = f"{error.filename or ''}: {error.strerror or error}"
        except Exception as error:  # one of ours: it ends the application, as in any other place
            opened = error
        with suppress(RuntimeError):  # the application has ended
            app.call_from_thread(self._opened, opened)

    def _opened(self, opened: Any) -> None:
        if isinstance(opened, Exception):
            raise opened
        self.dismiss(opened)
