"""Room of a table at which people sit: turns, hints, undo, saves, reviews."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, ClassVar

from busso.cards.hand import Hand, Move
from busso.evaluate.review.advisers import ActionValue, Evaluation
from busso.play.spectate import SLOWER
from busso.play.table.hints import is_mistake
from busso.play.table.session import Session
from busso.play.table.speech import Speech
from busso.play.table.table import Table
from busso.play.views import events, result, stays_longer, why_not
from busso.play.web.host import Host
from busso.play.web.room import Room


class TableRoom(Room):
    """Table at which a person sits; refuses actions during computations."""

    WHERE = "table"
    TOOLS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("hint", "t"), ("odds", "o"), ("undo", "u"), ("review", "v"), ("save", "w"),
    )  # fmt: skip
    table: Table

    def __init__(self, desk: Host, session: Session) -> None:
        super().__init__(desk, Speech(desk.language, session.table, session.coach))
        self.session = session
        self.pace = desk.settings.pace  # seconds between two replies
        self.covered = self._shared  # until the next person has sat down at the page
        self.pausing = False  # between two replies
        self.waits = ""  # the prompt while something stays until the person goes on
        self.refused = ""  # why an action was, until the next position
        self._own_save = session.path is None  # the file is ours to remove once the game is over
        self.review: tuple[Hand, list[Evaluation]] | None = None
        self.at = 0  # the reviewed decision

    def start(self) -> None:
        if self.session.finished:
            self.session.deal()
        self._go_on()

    @property
    def _shared(self) -> bool:
        """True if several people share the page, and none may see another's cards."""
        return len(self.table.people) > 1

    @property
    def is_quiet(self) -> bool:
        return super().is_quiet and not self.pausing

    def legal(self) -> Sequence[int]:
        free = self.is_quiet and not (self.covered or self.waits)
        return self.table.hand.legal if free and self.table.person_to_move else ()

    def prompt(self) -> str:
        say, turn = self.language.say, self.table.turn
        if self.waits:
            return self.waits
        if self.thinking:
            name = self.table.setup.seats[turn] if turn is not None and self.thinking == "app.thinking" else ""
            return say(self.thinking, seat=turn, name=name)
        if self.covered and not self.pausing:
            return say("web.pass", seat=self.viewer)
        if self.table.hand.over:
            return say("web.game_over" if self.table.game_over else "web.hand_over")
        return "" if self.pausing else say("app.your_turn", seat=self.viewer)

    @property
    def goes_on(self) -> bool:
        """True if the table waits for `next`."""
        return self.is_quiet and bool(self.covered or self.waits or self.table.hand.over)

    def do_choose(self, value: str) -> None:
        """Play a person's action, or show why it is not possible."""
        if self._is_busy() or not value.isdecimal():
            return
        if not self.table.person_to_move:
            self._say("reason.over")
            return
        action = int(value)
        reason = why_not(self.table.hand, action)
        if reason is not None:
            self.refused = self.speech.line(reason)
            self.refresh()
            return
        self.moved(self.session.play(action))

    def moved(self, move: Move) -> None:
        """Show a move, and go on after the pace."""
        self.refused = ""
        self._say_trouble()
        self.tell(self.speech.lines(events(self.table.hand, move)))
        self.waits = self.waits_for(move)
        if not self.waits:
            self.pausing = True
            self.after(self.pace * (SLOWER if stays_longer(self.table.hand, move) else 1), self._go_on)
        self.refresh()

    def waits_for(self, move: Move) -> str:
        """Return the prompt while the outcome of a move stays until the person goes on; empty at other times."""
        return ""

    def _go_on(self) -> None:
        """Let a player move, in a thread, or ask a person; show how a hand ended."""
        self._say_trouble()
        self._keep()
        self.pausing = False
        turn = self.table.turn
        if turn is None:
            self.covered = False
            self.tell([*self.speech.lines(result(self.table.hand)), *self.speech.score()])
        elif self.table.person_to_move:
            self.covered = self.covered or (self._shared and turn != self.viewer)
            self.viewer = turn
        else:
            self.think("app.thinking", self.session.reply, self.moved)
            return
        self.refresh()

    def _keep(self) -> None:
        """Keep an unfinished game in its file, and remove a file of our own when the game is over."""
        with suppress(OSError):  # leaving says so
            if not self.table.game_over:
                if self.table.person_to_move:
                    self.session.save()
            elif self._own_save and self.session.path is not None:
                self.session.path.unlink(missing_ok=True)
                self.session.path = None

    def _is_busy(self) -> bool:
        return bool(self.thinking or self.pausing or self.waits or self.covered)

    def _say(self, key: str, **values: object) -> None:
        self.tell([self.language.say(key, **values)])
        self.refresh()

    def _say_trouble(self) -> None:
        """Report that the latest event may not be in a file; the game continues."""
        if (trouble := self.session.take_error()) is not None:
            self.complain(self.speech.not_saved(trouble))

    def do_next(self, _: str) -> None:
        if self.review is not None:
            self.do_back("")
        elif self.covered:
            self.covered = not self.is_quiet
            self.refresh()
        elif self.waits:
            self.waits = ""
            self._go_on()
        elif self.table.hand.over and self.is_quiet:
            self.log, self.news = [], []
            self.covered = self._shared
            self.think("app.dealing", self.session.deal, lambda _: self._go_on())

    def do_undo(self, _: str) -> None:
        if self._is_busy():
            return
        undone = self.session.undo()
        self._say("plain.undone" if undone else "plain.nothing_to_undo")
        if undone:
            self.refused = ""
            self._go_on()

    def do_hint(self, _: str) -> None:
        if not self._is_busy() and self.table.person_to_move:
            self.think("app.counting", lambda: self.session.coach.hint(self.table.hand), self._show_hint)

    def _show_hint(self, worths: list[ActionValue]) -> None:
        self.advise(worths)
        line = self.speech.hint(worths)
        if not worths:
            self.tell([line])
        elif not self._shared:  # the next person could read there what is meant for this seat alone
            self.log = [*self.log, line]

    def do_odds(self, _: str) -> None:
        if not self._is_busy() and self.table.person_to_move:
            self.think("app.counting", lambda: self.session.coach.odds(self.table.hand), self._show_odds)

    def _show_odds(self, odds: Sequence[Any]) -> None:
        self.advise(odds=odds)
        if not odds:
            self.tell(self.speech.odds(odds))

    def do_save(self, _: str) -> None:
        if self._is_busy():
            return
        try:
            path = self.session.save()
        except OSError as error:
            self.complain(self.speech.not_saved(error))
        else:
            self._own_save = False
            self._say("plain.saved", file=path)

    def do_review(self, _: str) -> None:
        """Judge the decisions of the last hand."""
        if self._is_busy():
            return
        hand = self.table.finished
        if hand is None:
            self._say("plain.nothing_to_review")
            return
        judge: Callable[[], list[Evaluation]] = lambda: self.session.coach.review(hand, self.table.people)  # noqa: E731

        def show(judged: list[Evaluation]) -> None:
            self.review, self.at = (hand, judged), 0

        self.think("app.counting", judge, show)

    def do_at(self, value: str) -> None:
        """Show another reviewed decision: its place, or the next or previous one, or mistake."""
        if self.review is None:
            return
        judged = self.review[1]
        if value.isdecimal() and int(value) < len(judged):
            self.at = int(value)
        elif value in ("next", "previous"):
            self.at = max(0, min(len(judged) - 1, self.at + (1 if value == "next" else -1)))
        elif value in ("next_mistake", "previous_mistake"):
            later = value == "next_mistake"
            wrong = [k for k, each in enumerate(judged) if is_mistake(each) and (k > self.at) == later and k != self.at]
            self.at = (min if later else max)(wrong, default=self.at)
        self.refresh()

    def do_back(self, _: str) -> None:
        self.review = None
        self.refresh()

    def saved_words(self) -> str:
        saved = self.session.leave()
        return self.language.say("plain.left_saved", command=self.session.command(self.language.name)) if saved else ""

    def rest(self) -> None:
        if not self.thinking and not self.table.game_over:
            with suppress(OSError):
                self.session.save()
