"""Table on the screen: turns, messages, the keys common to all games, and the review of a hand."""

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Click
from textual.widgets import Button, OptionList, Static
from textual.widgets.option_list import Option

from busso.cards.hand import Hand
from busso.evaluate.review.advisers import ActionValue, Evaluation
from busso.play.app.board import ActionBar, Board, BoardScreen
from busso.play.app.widgets.help import TABLE
from busso.play.app.widgets.keys import Dialog, Key, KeyBar, bound
from busso.play.language import Language
from busso.play.table.hints import Odds
from busso.play.table.session import Session
from busso.play.table.sitting import Sitting
from busso.play.table.speech import Speech
from busso.play.table.table import Table
from busso.play.views import position

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


class TableScreen(Sitting, BoardScreen):
    """Table at which a person sits, with the board and keys of its game."""

    TEXTS = "app"
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
        self.session, self.pace = session, pace
        self._news: list[str] = []  # the latest messages

    def compose_below(self) -> ComposeResult:
        yield from super().compose_below()
        yield ActionBar(id="actions")

    def on_mount(self) -> None:
        self.sit_down()

    def tell(self, lines: list[str]) -> None:
        for line in lines:
            self.note(line)
        self._news = [*self._news, *lines][-self.NEWS :]
        self.query_one("#news", Static).update("\n".join(self._news))

    def refresh_table(self) -> None:
        super().refresh_table()
        self.query_one(ActionBar).show(self.board.buttons())

    def show_board(self) -> None:
        self.board.visible = not self.covered  # takes effect with the next layout; a frame may be drawn before
        if self.covered:
            self.board.clear()
        else:
            super().show_board()

    def title_text(self) -> str:
        setup, score, say = self.table.setup, self.table.match_score, self.language.say
        names = ", ".join(self.speech.seat_name(seat, self.viewer) for seat in range(len(setup.seats)))
        match = () if score is None else (say("plain.match_score", score=tuple(score), to=setup.match),)
        return " · ".join((self.language.game(self.table.game.name), names, *match, say("app.seed", seed=setup.seed)))

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
        self.choose(action)

    def reject(self, line: str) -> None:
        self.complain(line)

    def on_click(self, event: Click) -> None:
        """Accept a click on the prompt that asks a person to sit down."""
        if self.covered and event.widget is self.query_one("#prompt"):
            self.action_next()

    def advise(self, worths: Sequence[ActionValue] = (), odds: Sequence[Odds] = ()) -> bool:
        if self.board.ADVISES:
            self.board.advise(worths, odds)
        return self.board.ADVISES

    def show_review(self, hand: Hand, judged: list[Evaluation]) -> None:
        self.app.push_screen(ReviewScreen(self.speech, hand, judged))
