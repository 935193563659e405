"""A table on the screen: whose turn it is, what was said, and the keys that all games have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.widgets import Button, RichLog

from cards.hand import Move
from command.errors import UserError
from evaluate.review.grading import Judged
from play.app.table.face import TableFace
from play.app.table.review import ReviewScreen
from play.coach.review import review
from play.views import events, result

if TYPE_CHECKING:
    from play.app.application import TableApp

SLOWER = 2.5  # times the pace after an event that one wants to look at, as a trick


class TableScreen(TableFace):
    """A table at which a person sits. A game's own screen draws what that person sees (`compose_board`, `draw`).

    Players think, and the coach counts, in a thread, one at a time: until it has done, whatever would touch the table
    is answered by a line that says who thinks. The screen's result is what is to be said after leaving.
    """

    # Keys that all games have; a game's screen adds its own. Digits choose among the legal actions.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "hint", show=False),
        Binding("o", "odds", show=False),
        Binding("u", "undo", show=False),
        Binding("v", "review", show=False),
        Binding("w", "save", show=False),
        Binding("n,enter", "next", show=False),
        Binding("q,escape", "stand_up", show=False),
        *(Binding(str(digit), f"choose_nth({(digit - 1) % 10})", show=False) for digit in range(10)),
    ]

    def on_mount(self) -> None:
        """Sit down."""
        if self.session.finished:
            self.session.deal()
        self._go_on()

    # --- turns

    def choose(self, action: int) -> None:
        """A person plays this, or is told why not."""
        if self._is_busy():
            return
        if not self.table.person_to_move:
            self.tell([self.language.say("reason.over")])
            return
        reason = self.table.why_not(action)
        if reason is not None:
            self.complain(self.speech.line(reason))
            return
        self._moved(self.session.play(action))

    def action_choose_nth(self, number: int) -> None:
        """A person plays the legal action of that number, from 0."""
        if number < len(self.table.hand.legal):
            self.choose(self.table.hand.legal[number])

    @on(Button.Pressed, ".action")
    def _pressed(self, event: Button.Pressed) -> None:
        self.choose(int(event.button.name or ""))

    def _moved(self, move: Move) -> None:
        self._say_trouble()
        self.tell(self.speech.lines(events(self.table.hand, move)))
        self._waits = self.waits_for(move)
        if self._waits is None:
            wait = self.pace * (SLOWER if self.stays_longer(move) else 1)
            self._pausing = True
            self.run_worker(self._go_on_after(wait))
        self.refresh_table()

    async def _go_on_after(self, wait: float) -> None:
        # Not `set_timer`: on a busy machine a timer that is late by its whole interval is never heard of again.
        await asyncio.sleep(wait)
        if self in self.app.screen_stack:
            self._go_on()

    def _go_on(self) -> None:
        """Whoever is to move moves: a player in a thread; a person is asked."""
        self._say_trouble()
        self._pausing = False
        if self._leaving is not None:
            self._leave_now()
            return
        if self.table.hand.over:
            self._covered = False
            self._hand_over()
        elif self.table.person_to_move:
            turn = self.table.turn
            assert turn is not None
            self._covered = self._covered or turn != self.viewer
            self.viewer = turn
        else:
            self.think("app.thinking", self.session.reply, self._moved)
        self.refresh_table()

    def _hand_over(self) -> None:
        self.tell([*self.speech.lines(result(self.table.hand)), *self.speech.score()])

    # --- what takes time

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
        if self._leaving is not None and not self._pausing:
            self._leave_now()
        else:
            self.refresh_table()

    def _is_busy(self) -> bool:
        """Whether nothing can be done at the table now; then that is said."""
        if self._covered:
            return True
        if self._thinking or self._pausing or self._waits:
            self.query_one("#prompt").add_class("-refused")
            return True
        return False

    def _guarded(self, job: Callable[[], Any]) -> Any:
        """The result of a job that writes files; None after saying that one cannot be written."""
        try:
            return job()
        except OSError as error:
            self.warn(self._not_saved(error))
            return None

    def _say_trouble(self) -> None:
        """What happened last may be in no file; the game goes on all the same."""
        if (trouble := self.session.take_trouble()) is not None:
            self.warn(self._not_saved(trouble))

    def _not_saved(self, error: OSError) -> str:
        return self.language.say("plain.not_saved", file=error.filename or "", why=error.strerror or error)

    # --- keys

    def action_next(self) -> None:
        """The next hand or game, or: the person who is asked has sat down before the screen."""
        if self._covered:
            self._covered = not self.is_quiet
            self.refresh_table()
        elif self._waits:
            self._waits = None
            self._go_on()
        elif self.table.hand.over and not self._thinking and not self._pausing:
            self.query_one("#log", RichLog).clear()
            self._covered = self._shared
            self.think("app.dealing", self.session.deal, lambda _: self._go_on())

    def on_click(self, event: Click) -> None:
        """Whoever is to sit down before the screen may click on the line that says so."""
        if self._covered and event.widget is self.query_one("#prompt"):
            self.action_next()

    def action_undo(self) -> None:
        """Back to the newest decision of a person."""
        if not self._is_busy():
            undone = self.session.undo()
            self.tell([self.language.say("plain.undone" if undone else "plain.nothing_to_undo")])
            self._go_on() if undone else None

    def action_hint(self) -> None:
        """What each action is worth."""
        if not self._is_busy() and self.table.person_to_move:
            job = lambda: self.session.coach.hint(self.table.hand)  # noqa: E731
            self.think("app.counting", job, self.show_hint)

    def action_odds(self) -> None:
        """How likely one is to win."""
        if not self._is_busy() and self.table.person_to_move:
            job = lambda: self.session.coach.odds(self.table.hand)  # noqa: E731
            self.think("app.counting", job, self.show_odds)

    def action_review(self) -> None:
        """The newest hand that is over, decision by decision."""
        if self._is_busy():
            return
        over = [hand for hand in self.table.hands if hand.over]
        if not over:
            self.tell([self.language.say("plain.nothing_to_review")])
            return

        def show(judged: list[Judged]) -> None:
            self.app.push_screen(ReviewScreen(self.speech, over[-1], judged))

        self.think("app.counting", lambda: review(self.session.coach, over[-1], self.table.people), show)

    def action_help(self) -> None:
        """How the game is played, and with which keys."""
        cast("TableApp", self.app).action_help()

    def action_save(self) -> None:
        """Write the table to a file now."""
        if not self._is_busy() and (path := self._guarded(self.session.save)) is not None:
            self.tell([self.language.say("plain.saved", file=path)])

    # --- leaving

    def action_stand_up(self) -> None:
        """Back to the menu; what is not over is saved."""
        self.leave(lambda: None)

    def leave(self, then: Callable[[], None], unsaved: bool = False) -> None:
        """Leave when whoever thinks has done, saving what is not over, and then do something.

        What cannot be saved keeps one at the table until one leaves once more; not if it may be left `unsaved`.
        """
        self._leaving, self._must_leave = then, unsaved
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
            words = [self._not_saved(error)]
            if self._unsaved_at != len(self.table.hand.moves) and not self._must_leave:
                self._unsaved_at = len(self.table.hand.moves)
                self.warn(self.language.say("app.leave_unsaved", why=words[0]))
                return
        self.dismiss("".join(words))
        then()

    def saved_words(self) -> list[str]:
        """Save what is not over; how to go on with it, nothing where there was nothing to save. Raises OSError."""
        saved = self.session.leave()
        return (
            [self.language.say("plain.left_saved", command=self.session.command(self.language.name))] if saved else []
        )


def one_line(error: BaseException) -> str:
    """What went wrong, on one line."""
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}"
    return str(error) or type(error).__name__
