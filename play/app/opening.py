"""While a table is opened: rules are compiled and players loaded, which takes seconds."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Middle
from textual.screen import ModalScreen
from textual.widgets import LoadingIndicator, Static

from command.errors import UserError
from play.language import Language
from play.opening import open_session, warm_up
from play.session import Session
from play.settings import PlaySettings


class OpeningScreen(ModalScreen[Session | None]):
    """Opens a table in a thread; its result is the session, or None after the reason was shown."""

    def __init__(self, settings: PlaySettings, given: set[str], language: Language) -> None:
        super().__init__()
        self._settings, self._given, self._language = settings, given, language

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
            session = open_session(self._settings, self._given)
            warm_up(session)  # or the first moves would have to wait, and the screen with them
        except UserError as error:
            self.app.call_from_thread(self._refused, str(error))
        except OSError as error:
            self.app.call_from_thread(self._refused, f"{error.filename or ''}: {error.strerror or error}")
        else:
            self.app.call_from_thread(self.dismiss, session)

    def _refused(self, why: str) -> None:
        self.app.notify(why, severity="error", timeout=20, markup=False)
        self.dismiss(None)
