"""While a table is opened: rules are compiled and players loaded, which takes seconds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from textual.app import ComposeResult
from textual.containers import Middle
from textual.screen import ModalScreen
from textual.widgets import LoadingIndicator, Static

from command.errors import UserError
from play.language import Language
from play.opening import open_session, warm_up
from play.session import Session
from play.settings import PlaySettings


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
        """Open it."""
        self.run_worker(self._open, thread=True)

    def _open(self) -> None:
        try:
            opened = self._opens(self._settings, self._given)
        except UserError as error:
            self.app.call_from_thread(self.dismiss, str(error))
        except OSError as error:
            self.app.call_from_thread(self.dismiss, f"{error.filename or ''}: {error.strerror or error}")
        else:
            self.app.call_from_thread(self.dismiss, opened)
