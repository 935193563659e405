"""Board: one seat's view of a game, with its buttons; and the screen with a board, common to playing and watching."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, HorizontalGroup, Vertical, VerticalGroup
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Button, RichLog, Static
from textual.worker import Worker

from busso.base.errors import UserError
from busso.base.terminal import visible
from busso.evaluate.review.advisers import ActionValue
from busso.play.app.widgets.keys import Key, KeyBar
from busso.play.app.widgets.lines import Lines
from busso.play.language import Language
from busso.play.table.hints import Odds
from busso.play.table.sitting import Shown
from busso.play.table.speech import Speech, one_line
from busso.play.views import page, view


class ActionBar(VerticalGroup):
    """Legal actions as buttons of class `action`, named after the action, each with the digit that chooses it.

    They are narrower, in several rows, where one does not have the width.
    """

    _shown: tuple[list[tuple[int, str]], int] = [], 0

    def show(self, actions: list[tuple[int, str]]) -> None:
        room = self.size.width or self.app.size.width - 2  # before the first layout
        if self._shown == (actions, room):
            return
        self._shown = actions, room
        wanted = [(str(action), f"{number} {text}") for number, (action, text) in enumerate(actions, start=1)]
        widths = [max(Content(line).cell_length for line in label.split("\n")) for _, label in wanted]
        many = sum(max(14, width + 4) + 1 for width in widths) > room  # as in app.tcss
        rows, left = list[list[Button]]([[]]), room
        for (name, label), width in zip(wanted, widths, strict=True):
            if many and (left := left - width - 3) < 0:
                left = room - width - 3
                rows.append([])
            rows[-1].append(Button(label, name=name, classes="action", compact=True))
        self.set_class(many, "-many")
        self.remove_children()
        self.mount_all(HorizontalGroup(*row) for row in rows)

    def on_resize(self) -> None:
        self.show(self._shown[0])


class NextButton(Button, can_focus=False):  # the screen gets the keys, whatever was clicked before
    """Button with the action of Enter, for the mouse: shown where there is a next step."""

    def __init__(self, label: str) -> None:
        super().__init__(label, id="next", compact=True, action="screen.next")


class Board(Vertical):
    """View of a game from one seat, as in the line mode unless a subclass draws it.

    A game's board overrides `compose`, `draw` and possibly more. It plays no action, but posts clicks as `Chosen`.
    """

    LETTERS: ClassVar[dict[int, str]] = {}  # of the actions, for their buttons
    ROOMY: ClassVar[tuple[int, int]] = (160, 44)  # terminal size from which the screen has the class `-roomy`
    ADVISES: ClassVar[bool] = False  # shows `worths` and `odds` itself

    class Chosen(Message):
        """An action was clicked."""

        def __init__(self, action: int) -> None:
            super().__init__()
            self.action = action

    def __init__(self, speech: Speech) -> None:
        super().__init__(id="board")
        self.speech, self.language, self.table = speech, speech.language, speech.table
        self.viewer = 0
        self.legal: Sequence[int] = ()  # the actions available now
        self.seen: Any = None  # the last drawn view
        self.worths: dict[int, float | None] = {}  # by action, best first; like the odds, of the position `_advised_at`
        self.odds: Sequence[Odds] = ()
        self._advised_at: Any = None

    def compose(self) -> ComposeResult:
        yield Lines(id="lines", markup=False)

    def draw(self, seen: Any) -> None:
        """Show a view of the game, see `busso.play.views`."""
        self.put("lines", "\n".join(page(self.language, self.table.game.shown_as, seen, details=True)))

    def buttons(self) -> list[tuple[int, str]]:
        """Return the actions with buttons and their texts; empty if the board itself is clicked."""
        return [(action, self._button(action)) for action in self.legal]

    def _button(self, action: int) -> str:
        text = self.speech.action(action)
        text = f"{text} ({self.LETTERS[action]})" if action in self.LETTERS else text
        return "\n".join([text, *self.worth_lines(action)])

    def worth_lines(self, action: int) -> list[str]:
        """Return the coach's value of an action as lines; empty if not requested."""
        if action not in self.worths:
            return []
        return [self.language.say("app.worth", value=self.speech.value(self.worths[action]))]

    def show(self, viewer: int, legal: Sequence[int]) -> None:
        """Show the table as this seat sees it; it may choose among `legal` now."""
        self._forget_advice()
        self.viewer, self.legal, self.seen = viewer, legal, view(self.table.hand, viewer)
        self.draw(self.seen)

    def clear(self) -> None:
        """Clear all texts and available actions until the next `show`."""
        self.seen, self.legal = None, ()
        for text in self.query(Static):
            text.update()

    def redraw(self) -> None:
        """Redraw the last view, without reading the table, which a player's thread may be changing."""
        if self.seen is not None:
            self.draw(self.seen)

    def advise(self, worths: Sequence[ActionValue] = (), odds: Sequence[Odds] = ()) -> None:
        """Keep the coach's advice on this position until the next one."""
        self._forget_advice()
        self._advised_at = self.table.hand.state  # another array after every move
        self.worths = {worth.action: worth.value for worth in worths} or self.worths
        self.odds = odds or self.odds

    def _forget_advice(self) -> None:
        if self._advised_at is not self.table.hand.state:
            self.worths, self.odds = {}, ()

    def games_text(self, key: str) -> str:
        """Return the first seat's wins, ties and losses as text; empty for recorded games."""
        score = self.table.score
        if not score.wins:
            return ""
        lost = score.games - score.wins[0] - score.ties
        return self.language.say(key, games=score.games, won=score.wins[0], tied=score.ties, lost=lost)

    def put(self, name: str, text: str | Content) -> None:
        """Set the text of a widget, hidden while empty."""
        widget = self.query_one(f"#{name}", Static)
        widget.update(text)
        widget.display = bool(text)


class BoardScreen(Screen[str], Shown):
    """Board with title, log, news and prompt; the screen's result is a message to show after leaving."""

    HELP_KEYS: ClassVar[str]  # the keys on the help page
    KEYS: ClassVar[tuple[Key, ...]]

    def __init__(self, board: Board, language: Language) -> None:
        super().__init__()
        self.board, self.language = board, language
        self.speech, self.table = board.speech, board.table
        self.viewer = next(iter(self.table.people), 0)
        self.add_class(f"-{self.table.game.shown_as}")  # selects the styles of the game's board
        self.leaving: Callable[[], None] | None = None
        self._timer: Worker[None] | None = None
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

    def title_text(self) -> str:
        raise NotImplementedError

    def refresh_table(self) -> None:
        self.show_board()
        self.query_one("#title", Static).update(self.title_text())
        prompt = self.query_one("#prompt", Static)
        prompt.update(self.prompt_text())
        prompt.set_classes("-thinking" if self.thinking else "-yours" if self.is_quiet else "")

    def show_board(self) -> None:
        self.board.show(self.viewer, self.legal())

    def complain(self, line: str) -> None:
        self.app.notify(visible(line), severity="warning", markup=False)

    def warn(self, line: str) -> None:
        self.app.notify(visible(line), severity="warning", timeout=10, markup=False)

    def refuse(self) -> None:
        self.query_one("#prompt").add_class("-refused")

    def think(self, what: str, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        self.thinking = what
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
        self.thinking = ""
        then()
        if self.leaving is not None:
            self._leave_now()
        else:
            self.refresh_table()

    def beside(self, job: Callable[[], Any], then: Callable[[Any], object]) -> None:
        def work() -> None:
            found = job()
            self.call_later(then, found)

        self.run_worker(work, thread=True)

    def after(self, seconds: float, then: Callable[[], None]) -> None:
        async def work() -> None:
            # Not `set_timer`: on a busy machine a timer that is late by its whole interval never fires.
            await asyncio.sleep(seconds)
            self._timer = None
            if self in self.app.screen_stack:
                then()

        self.stop_timer()
        self._timer = self.run_worker(work)

    def stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def note(self, line: str) -> None:
        self.query_one("#log", RichLog).write(line)

    def clear_log(self) -> None:
        self.query_one("#log", RichLog).clear()

    def action_stand_up(self) -> None:
        self.leave(lambda: None)

    def leave(self, then: Callable[[], None], unsaved: bool = False) -> None:
        """Leave, then call `then`, after any computation; if saving fails, only at a second try or if `unsaved`."""
        self.leaving, self._may_be_unsaved = then, unsaved
        if not self.thinking:
            self._leave_now()
        self.refresh_table()

    def _leave_now(self) -> None:
        then, self.leaving = self.leaving, None
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
