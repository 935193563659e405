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

from command.errors import UserError
from play.language import Language
from play.table.opening import open_session, warm_up
from play.table.session import Session
from play.table.settings import PlaySettings


def open_warm(settings: PlaySettings, given: set[str]) -> Session:
    """A table at which the first moves need not wait for what is compiled. Raises as `open_session` does."""
    session = open_session(settings, given)
    warm_up(session)
    return session


class OpeningScreen(ModalScreen[Any]):
    """Opens a table in a thread; its result is what `opens` returns, or the reason why there is nothing, one line."""

    def __init__(
        self,
        settings: PlaySettings,
        given: set[str],
        language: Language,
        opens: Callable[[PlaySettings, set[str]], Any] = open_warm,
    ) -> None:
        super().__init__()
        self._settings, self._given, self._language, self._opens = settings, given, language, opens

    def compose(self) -> ComposeResult:
        """A sign that something is going on."""
        with Middle():
            yield Static(self._language.say("app.opening"), id="opening", markup=False)
            yield LoadingIndicator()

    def on_mount(self) -> None:
        """Open it, in a thread that nobody waits for when the application ends: a large file takes long to read."""
        threading.Thread(target=self._open, args=(self.app,), daemon=True).start()

    def _open(self, app: App[Any]) -> None:
        try:
            opened = self._opens(self._settings, self._given)
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
