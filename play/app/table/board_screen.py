"""A screen with a board: what stands around it, whether one plays or looks on, and what takes time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import RichLog, Static
from textual.worker import Worker

from busso.command.errors import UserError
from busso.command.terminal.visible import visible
from busso.play.app.table.board import Board
from busso.play.app.widgets.keys import Key, KeyBar
from busso.play.app.widgets.lines import Lines
from busso.play.language import Language

SLOWER = 2.5  # times the pace after an event that one wants to look at, as a trick


class BoardScreen(Screen[str]):
    """A board with title, log, news and prompt; its result is what is to be said after leaving.

    Players think, and the coach counts, in a thread, one at a time. A screen leaves when that has done.
    """

    HELP_KEYS: ClassVar[str]  # which keys the help page shows
    KEYS: ClassVar[tuple[Key, ...]]

    def __init__(self, board: Board, language: Language) -> None:
        super().__init__()
        self.board, self.language = board, language
        self.speech, self.table = board.speech, board.table
        self.viewer = next(iter(self.table.people), 0)
        self.add_class(f"-{self.table.game.shown_as}")  # the styles of a game are for its own board
        self._thinking: str | None = None  # the key of what is going on in the thread
        self._leaving: Callable[[], None] | None = None
        self._may_be_unsaved = False
        self._unsaved_at = -1  # after how many moves leaving was refused, since nothing could be saved

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
        """Return whether nothing is being computed, and nothing will happen by itself."""
        return not (self._thinking or self._leaving)

    def title_text(self) -> str:
        """Return the title: the game."""
        raise NotImplementedError

    def prompt_text(self) -> str:
        """Return the prompt."""
        raise NotImplementedError

    def legal(self) -> Sequence[int]:
        """The actions that a person may choose now."""
        return ()

    def refresh_table(self) -> None:
        """Show everything as it is now."""
        self.show_board()
        self.query_one("#title", Static).update(self.title_text())
        prompt = self.query_one("#prompt", Static)
        prompt.update(self.prompt_text())
        prompt.set_classes("-thinking" if self._thinking else "-yours" if self.is_quiet else "")

    def show_board(self) -> None:
        """Show what the viewer sees."""
        self.board.show(self.viewer, self.legal())

    def complain(self, line: str) -> None:
        """Say why something cannot be done."""
        self.app.notify(visible(line), severity="warning", markup=False)

    def warn(self, line: str) -> None:
        """Say what went wrong with files: it takes more than one line, and is no answer to what was played."""
        self.app.notify(visible(line), severity="warning", timeout=10, markup=False)

    def refuse(self) -> None:
        """Nothing can be done now: the prompt says why."""
        self.query_one("#prompt").add_class("-refused")

    def think(self, what: str, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """Do something in a thread, with its text `what` shown meanwhile, and then call `then` with its result."""
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
            # Not `set_timer`: on a busy machine a timer that is late by its whole interval is never heard of again.
            await asyncio.sleep(seconds)
            if self in self.app.screen_stack:
                then()

        return self.run_worker(work)

    # --- leaving

    def action_stand_up(self) -> None:
        self.leave(lambda: None)

    def leave(self, then: Callable[[], None], unsaved: bool = False) -> None:
        """Leave when nothing is computed any more, and then do something.

        What cannot be saved keeps one at the table until one leaves once more; not if it may stay `unsaved`.
        """
        self._leaving, self._may_be_unsaved = then, unsaved
        if not self._thinking:
            self._leave_now()
        self.refresh_table()

    def _leave_now(self) -> None:
        then, self._leaving = self._leaving, None
        assert then is not None
        while self.app.screen is not self:  # a review or a help page that lies above
            self.app.pop_screen()
        try:
            words = self.saved_words()
        except OSError as error:
            words = self.not_saved(error)
            if self._unsaved_at != len(self.table.hand.moves) and not self._may_be_unsaved:
                self._unsaved_at = len(self.table.hand.moves)
                self.warn(self.language.say("app.leave_unsaved", why=words))
                return
        self.dismiss(words)
        then()

    def not_saved(self, error: OSError) -> str:
        """Return the message that a file cannot be written, and why."""
        return self.language.say("plain.not_saved", file=error.filename or "", why=error.strerror or error)

    def saved_words(self) -> str:
        """Save what is not over; how to resume it, empty where there was nothing to save. Raises OSError."""
        return ""


def one_line(error: BaseException) -> str:
    """Describe an error on one line."""
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}"
    return str(error) or type(error).__name__
