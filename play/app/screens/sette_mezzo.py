"""Sette e mezzo: both sides' cards, exact odds, and a coach that judges every decision."""

from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical

from busso.play.app.board import Board, NextButton
from busso.play.app.table import HELP, HINT, LEAVE, ODDS, REVIEW, UNDO, TableScreen
from busso.play.app.widgets.keys import Key
from busso.play.app.widgets.lines import Lines, boxes
from busso.play.table.hints import Coaching
from busso.play.table.sitting import Coached
from busso.play.views.sette_mezzo import LETTERS
from busso.play.views.small import SmallView
from busso.sette_mezzo.rules import points_text

_FACES = "FCR"
_MOST = 7.5


class GameBoard(Board):
    """Both hands; below, the outcome or the odds, the coach's comments, and the games."""

    LETTERS = LETTERS
    ADVISES = True
    comment = ""  # the coach's, on the last decision
    coached = ""  # its totals

    def compose(self) -> ComposeResult:
        with Horizontal(id="hands"):
            yield Lines(id="you", markup=False)
            yield Lines(id="opponent", markup=False)
        with Vertical(id="below"):
            for name in ("outcome", "rule", "odds", "comment", "coach", "games"):
                yield Lines(id=name, markup=False)
            yield NextButton(self.language.say("sette_screen.next"))

    def draw(self, seen: SmallView) -> None:
        say, over = self.language.say, seen.outcome is not None
        counts = seen.other_counts or points_text(int(self.table.hand.state[0]["opponent_score"]))
        self.put("you", self._hand("you", seen.cards, seen.counts))
        self.put("opponent", self._hand("opponent", seen.other, counts))
        self.put("rule", "" if over else say("sette_screen.rule", counts=counts, rule=seen.rule))
        self.put("outcome", say(f"result.{seen.outcome}") if over else "")
        self.screen.set_class(over, "-over")
        self.put("odds", "" if over or not self.table.people else self._odds_text())
        self.put("comment", self.comment)
        self.query_one("#comment").set_class(bool(self.comment), "-heard")
        self.put("coach", self.coached)
        self.put("games", self.games_text("sette_screen.games"))

    def _hand(self, whose: str, cards: tuple[str, ...], counts: str) -> str:
        key = f"sette_screen.{whose}{'_over' if float(counts) > _MOST else ''}"
        faces = [f"{card} ½" if card in _FACES else card for card in cards]
        return "\n".join([self.language.say(key, counts=counts), *boxes(faces, self.screen.has_class("-roomy"))])

    def _odds_text(self) -> str:
        say = self.language.say
        if not self.odds:
            return say("sette_screen.no_odds")
        outcomes = [say(f"sette_screen.{name}") for name in self.odds[0].chances]
        lines = [f"{'':<12}" + "".join(f"{name:>9}" for name in outcomes)]
        for odds in self.odds:
            chances = "".join(f"{100 * chance:8.1f}%" for chance in odds.chances.values())
            lines.append(f"{self.speech.action(odds.action or 0):<12}" + chances)
        return "\n".join([say("sette_screen.odds"), *lines])


class GameScreen(Coached, TableScreen):
    """Screen of Sette e mezzo."""

    BOARD = GameBoard
    board: GameBoard
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(letter, f"choose({action})", show=False) for action, letter in GameBoard.LETTERS.items()),
        Binding("c", "coach", show=False),
    ]
    KEYS: ClassVar[tuple[Key, ...]] = (HINT, ODDS, Key("c", "coach", "coach"), UNDO, REVIEW, HELP, LEAVE)

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.coaching = Coaching()

    def on_mount(self) -> None:  # Textual calls the base class's too
        hand = self.table.hand
        self.run_worker(lambda: self.session.coach.hint(hand), thread=True)  # solves the game

    def refresh_table(self) -> None:
        self.board.coached, self.board.comment = self.coach_text(), self.comment
        super().refresh_table()
