"""Table on the screen: turns, messages, the keys common to all games, and the review of a hand."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.widgets import Button, OptionList, RichLog, Static
from textual.widgets.option_list import Option

from busso.cards.hand import Hand, Move
from busso.evaluate.review.advisers import ActionValue, Evaluation
from busso.play.app.board import ActionBar, Board, BoardScreen
from busso.play.app.widgets.help import TABLE
from busso.play.app.widgets.keys import Dialog, Key, KeyBar, bound
from busso.play.language import Language
from busso.play.spectate import SLOWER
from busso.play.table.hints import Odds
from busso.play.table.session import Session
from busso.play.table.speech import Speech
from busso.play.table.table import Table
from busso.play.views import events, position, result, stays_longer, why_not

_BAR = 6  # cells of the most expensive decision
HINT, ODDS, UNDO = Key("t", "hint", "hint"), Key("o", "odds", "odds"), Key("u", "undo", "undo")
REVIEW, SAVE, NEXT = Key("v", "review", "review"), Key("w", "save", "save"), Key("↵", "next", "next", also="n")
HELP, LEAVE = Key("?", "app.help", "help"), Key("q", "stand_up", "leave", also="escape")


class ReviewScreen(Dialog[None]):
    """List of a hand's decisions, with the values and the position of the selected one."""

    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("s", "sort", "sort"),
        Key("Tab", "other_half", "review_screen.scroll"),
        Key("q", "back", "back", also="escape,v"),
    )
    BINDINGS: ClassVar[list[BindingType]] = bound(KEYS)

    def __init__(self, speech: Speech, hand: Hand, judged: list[Evaluation]) -> None:
        super().__init__()
        self._speech, self._hand, self._judged = speech, hand, judged
        self._say = speech.language.say
        self._worst_first = False
        self._dearest = max((each.cost or 0.0 for each in judged), default=0.0)

    def compose(self) -> ComposeResult:
        yield Static(id="review-title", markup=False)
        with Horizontal(id="review-decisions"):
            yield OptionList(id="review-list", markup=False)
            with VerticalScroll(id="review-values", can_focus=False):
                yield Static(id="review-worths", markup=False)
        with VerticalScroll(id="review-position"):
            yield Static(id="review-lines", markup=False)
        yield KeyBar(self.KEYS, self._speech.language)

    def on_mount(self) -> None:
        self._list(0)

    def _list(self, highlighted: int) -> None:
        order = sorted(self._judged, key=lambda each: -(each.cost or 0.0)) if self._worst_first else self._judged
        found = self.query_one("#review-list", OptionList)
        found.clear_options()
        found.add_options(Option(self._line(each), id=str(each.number)) for each in order)
        if order:
            found.highlighted = next((k for k, each in enumerate(order) if each.number == highlighted), 0)
        sorting = self._say("review_screen.worst" if self._worst_first else "review_screen.played")
        total = self._speech.review_total(self._judged)
        title = " · ".join((self._say("review_screen.title"), total, *([sorting] if order else [])))
        self.query_one("#review-title", Static).update(title)

    def _line(self, judged: Evaluation) -> Content:
        speech = self._speech
        seat = f"{judged.seat} " if len({each.seat for each in self._judged}) > 1 else ""
        head = f"{judged.number:>3} {seat}{speech.action(judged.action)} "
        if judged.cost == 0:
            return Content.assemble("✓", head, (self._say("review_screen.all_best"), "italic"))
        cost = "?" if judged.cost is None else f"-{judged.cost:.2f}"
        best = self._say("review_screen.best", best=speech.action(judged.best.action))
        cells = round(_BAR * (judged.cost or 0.0) / self._dearest) if self._dearest else 0
        mark = "!" if judged.cost == self._dearest else "·"
        return Content.assemble(mark, head, (cost, "bold"), (f" {'■' * cells:<{_BAR}}", "$text-error"), f" {best}")

    @on(OptionList.OptionHighlighted)
    def _pointed_at(self, event: OptionList.OptionHighlighted) -> None:
        judged = next(each for each in self._judged if str(each.number) == event.option_id)
        self.query_one("#review-worths", Static).update("\n".join(self._worths(judged)))
        before = self._say("review_screen.before", number=judged.number, seat=judged.seat)
        lines = position(self._speech.language, self._hand, judged.number, judged.seat)
        self.query_one("#review-lines", Static).update("\n".join((before, *lines)))

    def _worths(self, judged: Evaluation) -> list[str]:
        speech = self._speech
        lines = [self._say("review_screen.worth", unit=speech.value_unit(), player=speech.coach.name)]
        for worth in judged.worths:
            best = "★" if worth.value == judged.best.value else " "
            played = f"  ← {self._say('review_screen.this_one')}" if worth.action == judged.action else ""
            lines.append(f"{best} {speech.worth(worth)}{played}")
        return lines

    def action_sort(self) -> None:
        found = self.query_one("#review-list", OptionList)
        if self._judged and found.highlighted is not None:
            self._worst_first = not self._worst_first
            number = int(found.get_option_at_index(found.highlighted).id or 0)
            self._list(0 if self._worst_first else number)

    def action_other_half(self) -> None:
        """Switch the arrows between the decisions and a position that needs scrolling."""
        found, position = self.query_one("#review-list"), self.query_one("#review-position")
        (position if found.has_focus else found).focus()


class TableScreen(BoardScreen):
    """Table at which a person sits, with the board and keys of its game; refuses actions during computations."""

    BOARD: ClassVar[type[Board]] = Board
    NEWS: ClassVar[int] = 3  # lines of the latest messages
    HELP_KEYS = TABLE
    table: Table
    KEYS: ClassVar[tuple[Key, ...]] = (HINT, ODDS, UNDO, REVIEW, SAVE, NEXT, HELP, LEAVE)
    BINDINGS: ClassVar[list[BindingType]] = [
        *bound(KEYS),
        *(Binding(str(digit), f"choose_nth({(digit - 1) % 10})", show=False) for digit in range(10)),
    ]

    def __init__(self, session: Session, language: Language, pace: float) -> None:
        super().__init__(self.BOARD(Speech(language, session.table, session.coach)), language)
        self.session = session
        self.pace = pace  # seconds between two replies
        self._covered = self._shared  # until the next person has sat down at the screen
        self._pausing = False  # between two replies
        self._news: list[str] = []  # the latest messages
        self.waits: str | None = None  # the prompt while something stays until Enter

    def compose_below(self) -> ComposeResult:
        yield from super().compose_below()
        yield ActionBar(id="actions")

    def on_mount(self) -> None:
        if self.session.finished:
            self.session.deal()
        self._go_on()

    @property
    def may_act(self) -> bool:
        """True if it is a person's turn and nothing is being computed."""
        return not (self._thinking or self._covered or self.waits or self._leaving) and self.table.person_to_move

    @property
    def _shared(self) -> bool:
        """True if several people share the screen, and none may see another's cards."""
        return len(self.table.people) > 1

    @property
    def is_quiet(self) -> bool:
        return super().is_quiet and not self._pausing

    def legal(self) -> Sequence[int]:
        return self.table.hand.legal if self.may_act and not self._pausing else ()

    def waits_for(self, move: Move) -> str | None:
        """Return the prompt while the outcome of a move stays until Enter; None at other times."""
        return None

    def tell(self, lines: list[str]) -> None:
        """Add lines to the log and the news."""
        log = self.query_one("#log", RichLog)
        for line in lines:
            log.write(line)
        self._news = [*self._news, *lines][-self.NEWS :]
        self.query_one("#news", Static).update("\n".join(self._news))

    def refresh_table(self) -> None:
        super().refresh_table()
        self.query_one(ActionBar).show(self.board.buttons())

    def show_board(self) -> None:
        self.board.visible = not self._covered  # takes effect with the next layout; a frame may be drawn before
        if self._covered:
            self.board.clear()
        else:
            super().show_board()

    def title_text(self) -> str:
        setup, score, say = self.table.setup, self.table.match_score, self.language.say
        names = ", ".join(self.speech.seat_name(seat, self.viewer) for seat in range(len(setup.seats)))
        match = () if score is None else (say("plain.match_score", score=tuple(score), to=setup.match),)
        return " · ".join((self.language.game(self.table.game.name), names, *match, say("app.seed", seed=setup.seed)))

    def prompt_text(self) -> str:
        say, turn = self.language.say, self.table.turn
        if self.waits:
            return self.waits
        if self._thinking:
            name = self.table.setup.seats[turn] if turn is not None and self._thinking == "app.thinking" else ""
            return say(self._thinking, seat=turn, name=name)
        if self._covered and not self._pausing:
            return say("app.pass", seat=self.viewer)
        if self.table.hand.over:
            return say("app.next_game" if self.table.game_over else "app.next_hand")
        return "" if self._pausing else say("app.your_turn", seat=self.viewer)

    @on(Board.Chosen)
    def _clicked(self, event: Board.Chosen) -> None:
        self.action_choose(event.action)

    @on(Button.Pressed, ".action")
    def _pressed(self, event: Button.Pressed) -> None:
        self.action_choose(int(event.button.name or ""))

    def action_choose_nth(self, number: int) -> None:
        if number < len(self.table.hand.legal):
            self.action_choose(self.table.hand.legal[number])

    def action_choose(self, action: int) -> None:
        """Play a person's action, or show why it is not possible."""
        if self._is_busy():
            return
        if not self.table.person_to_move:
            self.tell([self.language.say("reason.over")])
            return
        reason = why_not(self.table.hand, action)
        if reason is not None:
            self.complain(self.speech.line(reason))
            return
        self._moved(self.session.play(action))

    def _moved(self, move: Move) -> None:
        self._say_trouble()
        self.tell(self.speech.lines(events(self.table.hand, move)))
        self.waits = self.waits_for(move)
        if self.waits is None:
            self._pausing = True
            wait = self.pace * (SLOWER if stays_longer(self.table.hand, move) else 1)
            self.after(wait, self._go_on)
        self.refresh_table()

    def _go_on(self) -> None:
        """Let a player move, in a thread, or ask a person; show how a hand ended."""
        self._say_trouble()
        self._pausing = False
        turn = self.table.turn
        if turn is None:
            self._covered = False
            self.tell([*self.speech.lines(result(self.table.hand)), *self.speech.score()])
        elif self.table.person_to_move:
            self._covered = self._covered or turn != self.viewer
            self.viewer = turn
        else:
            self.think("app.thinking", self.session.reply, self._moved)
        self.refresh_table()

    def _is_busy(self) -> bool:
        """Return whether nothing can be done at the table now; the screen then shows it."""
        busy = bool(self._thinking or self._pausing or self.waits)
        if busy and not self._covered:
            self.refuse()
        return busy or self._covered

    def guarded(self, job: Callable[[], Any]) -> Any:
        """Return the result of a job that writes files; None after reporting a failed write."""
        try:
            return job()
        except OSError as error:
            self.warn(self.speech.not_saved(error))
            return None

    def _say_trouble(self) -> None:
        """Report that the latest event may not be in a file; the game continues."""
        if (trouble := self.session.take_error()) is not None:
            self.warn(self.speech.not_saved(trouble))

    def action_next(self) -> None:
        """Uncover the screen for the next person, end a wait, or deal the next hand or game."""
        if self._covered:
            self._covered = not self.is_quiet
            self.refresh_table()
        elif self.waits:
            self.waits = None
            self._go_on()
        elif self.table.hand.over and not self._thinking and not self._pausing:
            self.query_one("#log", RichLog).clear()
            self._covered = self._shared
            self.think("app.dealing", self.session.deal, lambda _: self._go_on())

    def on_click(self, event: Click) -> None:
        """Accept a click on the prompt that asks a person to sit down."""
        if self._covered and event.widget is self.query_one("#prompt"):
            self.action_next()

    def action_undo(self) -> None:
        if not self._is_busy():
            undone = self.session.undo()
            self.tell([self.language.say("plain.undone" if undone else "plain.nothing_to_undo")])
            self._go_on() if undone else None

    def action_hint(self) -> None:
        if not self._is_busy() and self.table.person_to_move:
            self.think("app.counting", lambda: self.session.coach.hint(self.table.hand), self._show_hint)

    def _show_hint(self, worths: list[ActionValue]) -> None:
        line = self.speech.hint(worths)
        if not worths or not self.board.ADVISES:
            self.tell([line])
            return
        self.board.advise(worths)
        if not self._shared:  # the next person could read there what is meant for this seat alone
            self.query_one("#log", RichLog).write(line)

    def action_odds(self) -> None:
        if not self._is_busy() and self.table.person_to_move:
            self.think("app.counting", lambda: self.session.coach.odds(self.table.hand), self._show_odds)

    def _show_odds(self, odds: list[Odds]) -> None:
        if odds and self.board.ADVISES:
            self.board.advise(odds=odds)
        else:
            self.tell(self.speech.odds(odds))

    def action_review(self) -> None:
        if self._is_busy():
            return
        if (hand := self.table.finished) is None:
            self.tell([self.language.say("plain.nothing_to_review")])
            return
        self.think(
            "app.counting",
            lambda: self.session.coach.review(hand, self.table.people),
            lambda judged: self.app.push_screen(ReviewScreen(self.speech, hand, judged)),
        )

    def action_save(self) -> None:
        if not self._is_busy() and (path := self.guarded(self.session.save)) is not None:
            self.tell([self.language.say("plain.saved", file=path)])

    def saved_words(self) -> str:
        saved = self.session.leave()
        return self.language.say("plain.left_saved", command=self.session.command(self.language.name)) if saved else ""
