"""A table on the screen: whose turn it is, what was said, and the keys that all games have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Button, RichLog, Static

from command.errors import UserError
from play.app.actions import ActionBar
from play.app.keys import Key, KeyBar
from play.app.review import ReviewScreen
from play.hand import Move
from play.language import Language
from play.review import Judged, review
from play.session import Session
from play.speech import Speech
from play.views import events, result, view

SLOWER = 2.5  # times the pace after an event that one wants to look at, as a trick


class TableScreen(Screen[str]):
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

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("t", "hint", "hint"),
        Key("o", "odds", "odds"),
        Key("u", "undo", "undo"),
        Key("v", "review", "review"),
        Key("w", "save", "save"),
        Key("Enter", "next", "next"),
        Key("?", "help", "help"),
        Key("q", "stand_up", "leave"),
    )

    def __init__(self, session: Session, language: Language, pace: float) -> None:
        super().__init__()
        self.session, self.table, self.language = session, session.table, language
        self.speech = Speech(language, session.table, session.coach)
        self.pace = pace  # seconds between two replies
        self.viewer = self.table.people[0]
        self._covered = False  # a second person is to look away first
        self._thinking: str | None = None  # the key of what is going on in the thread
        self._pausing = False  # between two replies
        self._leaving: Callable[[], None] | None = None

    # --- what a game's screen gives

    def compose_board(self) -> ComposeResult:
        """The widgets of the game."""
        raise NotImplementedError

    def draw(self, seen: Any) -> None:
        """Show a view of the game, that of `self.viewer`; see `play.views`."""
        raise NotImplementedError

    def stays_longer(self, move: Move) -> bool:
        """Whether what came of a move is to stay on the screen for a while."""
        return False

    # --- the screen

    def compose(self) -> ComposeResult:
        """Title, board, what happened, what to do, and the keys."""
        yield Static(id="title", markup=False)
        with Horizontal(id="middle"):
            with Vertical(id="board"):
                yield from self.compose_board()
            yield RichLog(id="log", wrap=True, markup=False, min_width=0)
        yield Static(id="news", markup=False)
        yield Static(id="prompt", markup=False)
        yield ActionBar(id="actions")
        yield KeyBar(self.KEYS, self.language)

    def on_mount(self) -> None:
        """Sit down."""
        if self.session.finished:
            self.session.deal()
        self._go_on()

    # --- turns

    @property
    def may_act(self) -> bool:
        """Whether it is a person's turn and nobody thinks."""
        return not (self._thinking or self._covered or self._leaving) and self.table.person_to_move

    @property
    def is_quiet(self) -> bool:
        """Whether nobody thinks, and nothing is about to happen by itself."""
        return not (self._thinking or self._pausing or self._leaving)

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
        if (move := self._guarded(lambda: self.session.play(action))) is not None:
            self._moved(move)

    def action_choose_nth(self, number: int) -> None:
        """A person plays the legal action of that number, from 0."""
        if number < len(self.table.hand.legal):
            self.choose(self.table.hand.legal[number])

    @on(Button.Pressed, ".action")
    def _pressed(self, event: Button.Pressed) -> None:
        self.choose(int(event.button.name or ""))

    def _moved(self, move: Move) -> None:
        self.tell(self.speech.lines(events(self.table.hand, move)))
        wait = self.pace * (SLOWER if self.stays_longer(move) else 1)
        self._pausing = True
        self.refresh_table()
        self.set_timer(max(wait, 0.001), self._go_on)

    def _go_on(self) -> None:
        """Whoever is to move moves: a player in a thread; a person is asked."""
        self._pausing = False
        if self._leaving is not None:
            self._leave_now()
            return
        if self.table.hand.over:
            self._hand_over()
        elif self.table.person_to_move:
            turn = self.table.turn
            assert turn is not None
            self._covered = len(self.table.people) > 1 and turn != self.viewer
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
        if self._thinking or self._pausing:
            self.query_one("#prompt").add_class("-refused")
            return True
        return False

    def _guarded(self, job: Callable[[], Any]) -> Any:
        """The result of a job that writes files; None after saying that one cannot be written."""
        try:
            return job()
        except OSError as error:
            self.complain(one_line(error))
            return None

    # --- what is said

    def tell(self, lines: list[str]) -> None:
        """Add lines to what was said."""
        log = self.query_one("#log", RichLog)
        for line in lines:
            log.write(line)
        self._news = lines[-3:]
        self.query_one("#news", Static).update("\n".join(lines[-3:]))

    def complain(self, line: str) -> None:
        """Say why something cannot be done."""
        self.app.notify(line, severity="warning", markup=False)

    def refresh_table(self) -> None:
        """Show everything as it is now."""
        self.query_one("#title", Static).update(self.title_text())
        prompt = self.query_one("#prompt", Static)
        prompt.update(self._prompt())
        prompt.set_classes("-thinking" if self._thinking else "-yours" if self.may_act else "")
        self.query_one("#board").visible = not self._covered
        self.draw(view(self.table.hand, self.viewer))
        legal = self.table.hand.legal if self.may_act and not self._pausing else []
        self.query_one(ActionBar).show(self.action_buttons(legal))
        self.refresh_bindings()

    def action_buttons(self, legal: list[int]) -> list[tuple[int, str]]:
        """The actions that get a button, with what stands on it; none where the board itself is clicked."""
        return [(action, self.speech.action(action)) for action in legal]

    def title_text(self) -> str:
        """Game, seats, score, seed."""
        names = ", ".join(self.seat_name(seat) for seat in range(len(self.table.setup.seats)))
        score = self.table.match_score
        game = self.language.texts.get(f"game.{self.table.game.name}", self.table.game.name)
        match = (
            ""
            if score is None
            else " · " + self.language.say("plain.match_score", score=tuple(score), to=self.table.setup.match)
        )
        return f"{game} · {names}{match} · {self.language.say('app.seed', seed=self.table.setup.seed)}"

    def seat_name(self, seat: int) -> str:
        """Who sits there."""
        name = self.table.setup.seats[seat]
        return self.language.say("app.you") if seat == self.viewer and seat in self.table.people else name

    def _prompt(self) -> str:
        say = self.language.say
        if self._covered:
            return say("app.pass", seat=self.viewer)
        if self._thinking:
            turn = self.table.turn
            who = self.table.setup.seats[turn] if turn is not None and self._thinking == "app.thinking" else ""
            return say(self._thinking, seat=turn, name=who)
        if self.table.hand.over:
            return say("app.next_game" if self.table.game_over else "app.next_hand")
        return "" if self._pausing else say("app.your_turn", seat=self.viewer)

    # --- keys

    def action_next(self) -> None:
        """The next hand or game, or: the person who is asked has sat down before the screen."""
        if self._covered:
            self._covered = False
            self.refresh_table()
        elif self.table.hand.over and not self._thinking and not self._pausing:
            self.query_one("#log", RichLog).clear()
            self.think("app.dealing", self.session.deal, lambda _: self._go_on())

    def action_undo(self) -> None:
        """Back to the newest decision of a person."""
        if not self._is_busy():
            undone = self._guarded(self.session.undo)
            self.tell([self.language.say("plain.undone" if undone else "plain.nothing_to_undo")])
            self._go_on() if undone else None

    def action_hint(self) -> None:
        """What each action is worth."""
        if not self._is_busy() and self.table.person_to_move:
            job = lambda: self.session.coach.hint(self.table.hand)  # noqa: E731
            self.think("app.counting", job, lambda worths: self.tell([self.speech.hint(worths)]))

    def action_odds(self) -> None:
        """How likely one is to win."""
        if not self._is_busy() and self.table.person_to_move:
            job = lambda: self.session.coach.odds(self.table.hand)  # noqa: E731
            self.think("app.counting", job, lambda found: self.tell(self.speech.odds(found)))

    def action_review(self) -> None:
        """The newest hand that is over, decision by decision."""
        over = [hand for hand in self.table.hands if hand.over]
        if self._is_busy() or not over:
            self.tell([self.language.say("plain.nothing_to_review")])
            return

        def show(judged: list[Judged]) -> None:
            self.app.push_screen(ReviewScreen(self.speech, over[-1], judged))

        self.think("app.counting", lambda: review(self.session.coach, over[-1], self.table.people), show)

    def action_save(self) -> None:
        """Write the table to a file now."""
        if not self._is_busy() and (path := self._guarded(self.session.save)) is not None:
            self.tell([self.language.say("plain.saved", file=path)])

    # --- leaving

    def action_stand_up(self) -> None:
        """Back to the menu; what is not over is saved."""
        self.leave(lambda: None)

    def leave(self, then: Callable[[], None]) -> None:
        """Leave when whoever thinks has done, saving what is not over, and then do something."""
        self._leaving = then
        if not self._thinking and not self._pausing:
            self._leave_now()
        self.refresh_table()

    def _leave_now(self) -> None:
        then, self._leaving = self._leaving, None
        assert then is not None
        try:
            saved = self.session.leave()
        except OSError as error:
            self.complain(one_line(error))
            return
        words = self.language.say("plain.left_saved", command=self.session.command(self.language.name)) if saved else ""
        self.dismiss(words)
        then()


def one_line(error: BaseException) -> str:
    """What went wrong, on one line."""
    if isinstance(error, OSError):
        return f"{error.filename or ''}: {error.strerror or error}"
    return str(error) or type(error).__name__
