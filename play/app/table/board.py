"""A game on the screen: the board, which each game draws in its own way, and what stands around all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, HorizontalGroup, Vertical
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Button, RichLog, Static

from cards.hand import Move
from command.errors import UserError
from command.terminal.visible import visible
from evaluate.review.advisers import Worth
from play.app.keys import Key, KeyBar
from play.coach.hints import Odds
from play.language import Language
from play.plain.pages import page
from play.table.speech import Speech
from play.views import view

SLOWER = 2.5  # times the pace after an event that one wants to look at, as a trick


class ActionBar(HorizontalGroup):
    """The legal actions as buttons of class `action`, whose name is the action, each with the digit that chooses it."""

    def show(self, actions: list[tuple[int, str]]) -> None:
        """Show these, in place of those that were there."""
        wanted = [(str(action), f"{number} {text}") for number, (action, text) in enumerate(actions, start=1)]
        if wanted == [(button.name, str(button.label)) for button in self.query(Button)]:
            return
        self.remove_children()
        self.mount_all(Button(label, name=name, classes="action", compact=True) for name, label in wanted)


class NextButton(Button, can_focus=False):  # the key goes to the screen, whatever was clicked before
    """What Enter does, for those who play with the mouse: shown where there is something to go on to."""

    def __init__(self, label: str) -> None:
        super().__init__(label, id="next", compact=True, action="screen.next")


class Board(Vertical):
    """What one seat sees of a game: as the line mode says it, unless a game's own board draws it.

    A game's board gives `compose` and `draw`, and may give the rest. It plays nothing: what was clicked is `Chosen`.
    """

    LETTERS: ClassVar[dict[int, str]] = {}  # of the actions, for their buttons
    ROOMY: ClassVar[tuple[int, int]] = (160, 44)  # from this size of the terminal on its screen has the class `-roomy`
    ADVISES: ClassVar[bool] = False  # whether it shows `worths` and `odds` itself

    class Chosen(Message):
        """An action was clicked."""

        def __init__(self, action: int) -> None:
            super().__init__()
            self.action = action

    def __init__(self, speech: Speech) -> None:
        super().__init__(id="board")
        self.speech, self.language, self.table = speech, speech.language, speech.table
        self.viewer = 0
        self.legal: Sequence[int] = ()  # what may be chosen now
        self.seen: Any = None  # the view that was drawn last
        self.worths: dict[int, float | None] = {}  # by action, the best first, and odds: of the position `_advised_at`
        self.odds: Sequence[Odds] = ()
        self._advised_at: Any = None

    def compose(self) -> ComposeResult:
        yield Static(id="lines", markup=False)

    def draw(self, seen: Any) -> None:
        """Show a view of the game, see `play.views`."""
        self.put("lines", "\n".join(page(self.language, self.table.game.name, seen, details=True)))

    def buttons(self) -> list[tuple[int, str]]:
        """The actions that get a button, with what stands on it; none where the board itself is clicked."""
        return [(action, self._button(action)) for action in self.legal]

    def _button(self, action: int) -> str:
        text = self.speech.action(action)
        text = f"{text} ({self.LETTERS[action]})" if action in self.LETTERS else text
        return "\n".join([text, *self.worth_lines(action)])

    def worth_lines(self, action: int) -> list[str]:
        """What the coach says of an action, when it was asked."""
        if action not in self.worths:
            return []
        return [self.language.say("app.worth", value=self.speech.value(self.worths[action]))]

    def stays_longer(self, move: Move) -> bool:
        """Whether what came of a move is to stay on the screen for a while."""
        return False

    def show(self, viewer: int, legal: Sequence[int]) -> None:
        """Show the table as this seat sees it, which may choose among `legal` now."""
        self._forget_advice()
        self.viewer, self.legal, self.seen = viewer, legal, view(self.table.hand, viewer)
        self.draw(self.seen)

    def redraw(self) -> None:
        """Draw what was seen last: a player may be at the table now."""
        if self.seen is not None:
            self.draw(self.seen)

    def advise(self, worths: Sequence[Worth] = (), odds: Sequence[Odds] = ()) -> None:
        """Keep what the coach said of this position until there is another."""
        self._forget_advice()
        self._advised_at = self.table.hand.state  # another array after every move
        self.worths = {worth.action: worth.value for worth in worths} or self.worths
        self.odds = odds or self.odds

    def _forget_advice(self) -> None:
        if self._advised_at is not self.table.hand.state:
            self.worths, self.odds = {}, ()

    def games_text(self, key: str) -> str:
        """How many games the first seat has won; empty where it is not known who played them."""
        score = self.table.score
        if not any(self.table.setup.seats):
            return ""
        lost = score.games - score.wins[0] - score.ties
        return self.language.say(key, games=score.games, won=score.wins[0], tied=score.ties, lost=lost)

    def put(self, name: str, text: str | Content) -> None:
        """Put a text into one of its widgets, which is hidden while there is none."""
        widget = self.query_one(f"#{name}", Static)
        widget.update(text)
        widget.display = bool(text)


class BoardScreen(Screen[str]):
    """A board with title, log, news and prompt; its result is what is to be said after leaving.

    Players think, and the coach counts, in a thread, one at a time. A screen leaves when that has done.
    """

    HELP: ClassVar[str]  # which keys the help page shows
    KEYS: ClassVar[tuple[Key, ...]]

    def __init__(self, board: Board, language: Language) -> None:
        super().__init__()
        self.board, self.language = board, language
        self.speech, self.table = board.speech, board.table
        self.viewer = next(iter(self.table.people), 0)
        self.add_class(f"-{self.table.game.name}")  # the styles of a game are for its own board
        self._thinking: str | None = None  # the key of what is going on in the thread
        self._leaving: Callable[[], None] | None = None
        self._may_be_unsaved = False
        self._unsaved_at = -1  # after how many moves leaving was refused, since nothing could be saved

    def compose(self) -> ComposeResult:
        yield Static(id="title", markup=False)
        with Horizontal(id="middle"):
            yield self.board
            yield RichLog(id="log", wrap=True, markup=False, min_width=0)
        yield from self.compose_below()
        yield KeyBar(self.KEYS, self.language)

    def compose_below(self) -> ComposeResult:
        """What happened last, and what to do."""
        yield Static(id="news", markup=False)
        yield Static(id="prompt", markup=False)

    def on_resize(self, event: Resize) -> None:
        width, height = self.board.ROOMY
        self.set_class(event.size.width >= width and event.size.height >= height, "-roomy")
        self.call_after_refresh(self.board.redraw)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing is computed, and nothing is about to happen by itself."""
        return not (self._thinking or self._leaving)

    def title_text(self) -> str:
        """What is played."""
        raise NotImplementedError

    def prompt_text(self) -> str:
        """What to do."""
        raise NotImplementedError

    def legal(self) -> Sequence[int]:
        """The actions that a person may choose now."""
        return ()

    def refresh_table(self) -> None:
        """Show everything as it is now."""
        self.board.show(self.viewer, self.legal())
        self.query_one("#title", Static).update(self.title_text())
        prompt = self.query_one("#prompt", Static)
        prompt.update(self.prompt_text())
        prompt.set_classes("-thinking" if self._thinking else "-yours" if self.is_quiet else "")

    def complain(self, line: str) -> None:
        """Say why something cannot be done."""
        self.app.notify(visible(line), severity="warning", markup=False)

    def warn(self, line: str) -> None:
        """Say what went wrong with files: it takes more than one line, and is no answer to what was played."""
        self.app.notify(visible(line), severity="warning", timeout=10, markup=False)

    def refuse(self) -> None:
        """Nothing can be done now: the prompt says why."""
        self.query_one("#prompt").add_class("-refused")

    def think(self, what: str, job: Callable[[], Any], then: Callable[[Any], None]) -> None:
        """Do something in a thread, with its text `what` shown meanwhile, and go on with its result."""
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

    def _thought(self, then: Callable[[], None]) -> None:
        self._thinking = None
        then()
        if self._leaving is not None:
            self._leave_now()
        else:
            self.refresh_table()

    async def after(self, seconds: float, then: Callable[[], None]) -> None:
        """Wait, and then do something; for `run_worker`."""
        # Not `set_timer`: on a busy machine a timer that is late by its whole interval is never heard of again.
        await asyncio.sleep(seconds)
        if self in self.app.screen_stack:
            then()

    # --- leaving

    def action_stand_up(self) -> None:
        """Back to the menu; what is not over is saved."""
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
        """Which file cannot be written, and why."""
        return self.language.say("plain.not_saved", file=error.filename or "", why=error.strerror or error)

    def saved_words(self) -> str:
        """Save what is not over; how to resume it, empty where there was nothing to save. Raises OSError."""
        return ""


def one_line(error: BaseException) -> str:
    """What went wrong, on one line."""
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}"
    return str(error) or type(error).__name__
