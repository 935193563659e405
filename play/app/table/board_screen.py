"""Screen with a board: the parts common to playing and watching, and background computations."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import RichLog, Static
from textual.worker import Worker

from busso.cards.base.errors import UserError
from busso.command.terminal.visible import visible
from busso.play.app.table.board import Board
from busso.play.app.widgets.keys import Key, KeyBar
from busso.play.app.widgets.lines import Lines
from busso.play.language import Language

SLOWER = 2.5  # times the pace, after an event worth looking at, such as a trick


class BoardScreen(Screen[str]):
    """Board with title, log, news and prompt; the screen's result is a message to show after leaving.

    Players and the coach compute in a thread, one at a time, and leaving waits for it.
    """

    HELP_KEYS: ClassVar[str]  # the keys on the help page
    KEYS: ClassVar[tuple[Key, ...]]

    def __init__(self, board: Board, language: Language) -> None:
        super().__init__()
        self.board, self.language = board, language
        self.speech, self.table = board.speech, board.table
        self.viewer = next(iter(self.table.people), 0)
        self.add_class(f"-{self.table.game.shown_as}")  # selects the styles of the game's board
        self._thinking: str | None = None  # text key of the computation in the thread
        self._leaving: Callable[[], None] | None = None
        self._may_be_unsaved = False
        self._unsaved_at = -1  # number of moves at which leaving was refused because saving failed

    def compose(self) -> ComposeResult:
        yield Lines(id="title", markup=False)
        with Horizontal(id="middle"):
            yield self.board
            yield RichLog(id="log", wrap=True, markup=False, min_width=0)
        yield from self.compose_below()
        yield KeyBar(self.KEYS, self.language)

    def compose_below(self) -> ComposeResult:
        """Compose the latest event and the prompt."""
        yield Lines(id="news", markup=False)
        yield Lines(id="prompt", markup=False)

    def on_resize(self, event: Resize) -> None:
        width, height = self.board.ROOMY
        self.set_class(event.size.width >= width and event.size.height >= height, "-roomy")
        self.call_after_refresh(self.board.redraw)

    @property
    def is_quiet(self) -> bool:
        """True if nothing is being computed or scheduled."""
        return not (self._thinking or self._leaving)

    def title_text(self) -> str:
        """Return the title."""
        raise NotImplementedError

    def prompt_text(self) -> str:
        """Return the prompt."""
        raise NotImplementedError

    def legal(self) -> Sequence[int]:
        """Return the actions that a person may choose now."""
        return ()

    def refresh_table(self) -> None:
        """Update everything to the current state."""
        self.show_board()
        self.query_one("#title", Static).update(self.title_text())
        prompt = self.query_one("#prompt", Static)
        prompt.update(self.prompt_text())
        prompt.set_classes("-thinking" if self._thinking else "-yours" if self.is_quiet else "")

    def show_board(self) -> None:
        """Show the viewer's board."""
        self.board.show(self.viewer, self.legal())

    def complain(self, line: str) -> None:
        """Show why something cannot be done."""
        self.app.notify(visible(line), severity="warning", markup=False)

    def warn(self, line: str) -> None:
        """Show a file error as a notification, since it is long and no answer to an action."""
        self.app.notify(visible(line), severity="warning", timeout=10, markup=False)

    def refuse(self) -> None:
        """Mark the prompt, which says why nothing can be done now."""
        self.query_one("#prompt").add_class("-refused")

    def think(self, what: str, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """Run a job in a thread while showing the text `what`, then call `then` with its result."""
        self._thinking = what
        self.refresh_table()

        def work() -> None:
            try:
                found = job()
            except (UserError, ValueError, OSError, MemoryError) as error:
                why = one_line(error)
                self.app.call_from_thread(self._thought, lambda: self.complain(why))
            else:
                self.app.call_from_thread(self._thought, lambda: then(found))

        self.run_worker(work, thread=True)

    def _thought(self, then: Callable[[], object]) -> None:
        self._thinking = None
        then()
        if self._leaving is not None:
            self._leave_now()
        else:
            self.refresh_table()

    def after(self, seconds: float, then: Callable[[], None]) -> Worker[None]:
        """Call a function after a delay in seconds, if this screen is still there."""

        async def work() -> None:
            # Not `set_timer`: on a busy machine a timer that is late by its whole interval never fires.
            await asyncio.sleep(seconds)
            if self in self.app.screen_stack:
                then()

        return self.run_worker(work)

    def action_stand_up(self) -> None:
        self.leave(lambda: None)

    def leave(self, then: Callable[[], None], unsaved: bool = False) -> None:
        """Leave, then call `then`, after any computation; if saving fails, only at a second try or if `unsaved`."""
        self._leaving, self._may_be_unsaved = then, unsaved
        if not self._thinking:
            self._leave_now()
        self.refresh_table()

    def _leave_now(self) -> None:
        then, self._leaving = self._leaving, None
        assert then is not None
        while self.app.screen is not self:  # a review or a help page above
            self.app.pop_screen()
        try:
            words = self.saved_words()
        except OSError as error:
            words = self.speech.not_saved(error)
            if self._unsaved_at != len(self.table.hand.moves) and not self._may_be_unsaved:
                self._unsaved_at = len(self.table.hand.moves)
                self.warn(self.language.say("app.leave_unsaved", why=words))
                return
        self.dismiss(words)
        then()

    def saved_words(self) -> str:
        """Save an unfinished table; return how to resume it, empty if there was nothing to save. Raises OSError."""
        return ""


def one_line(error: BaseException) -> str:
    """Describe an error on one line."""
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}"
    return str(error) or type(error).__name__
