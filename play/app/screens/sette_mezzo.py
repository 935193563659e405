"""Sette e mezzo: both sides' cards, exact odds, and a coach that looks at every decision."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.events import Resize
from textual.message import Message
from textual.widgets import RichLog, Static

from cards.hand import Hand, Move
from evaluate.review.advisers import Worth
from evaluate.review.grading import Judged
from play.app.keys import Key
from play.app.table.next import NextButton
from play.app.table.table import TableScreen
from play.app.widgets.boxes import boxes
from play.coach.coaching import Coaching, is_mistake
from play.coach.hints import Odds
from play.language import Language
from play.table.session import Session
from play.views.small import SmallView
from sette_mezzo.cards import points_text
from sette_mezzo.rules import HIT, STICK

_LETTERS = {STICK: "s", HIT: "h"}
_FACES = "FCR"
_MOST = 7.5
_ROOMY = 160, 44  # from this size on there are borders and larger cards
_WHOSE = {  # what is said above the cards, and above too many of them
    "you": ("sette_screen.you", "sette_screen.you_over"),
    "opponent": ("sette_screen.opponent", "sette_screen.opponent_over"),
}


class GameScreen(TableScreen):
    """A table of Sette e mezzo. The coach judges in a thread of its own, so that nobody waits for it."""

    CSS_PATH = "sette_mezzo.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(letter, f"do({action})", show=False) for action, letter in _LETTERS.items()),
        Binding("c", "coach", show=False),
    ]
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("t", "hint", "hint"),
        Key("o", "odds", "odds"),
        Key("c", "coach", "coach"),
        Key("u", "undo", "undo"),
        Key("v", "review", "review"),
        Key("?", "help", "help"),
        Key("q", "stand_up", "leave"),
    )

    class Judgement(Message):
        """What the coach found of a move of a hand, of the game of that number at the table."""

        def __init__(self, hand: Hand, game: int, move: Move, judged: Judged) -> None:
            super().__init__()
            self.hand, self.game, self.move, self.judged = hand, game, move, judged

    def __init__(self, session: Session, language: Language, pace: float) -> None:
        super().__init__(session, language, pace)
        self.coaching = Coaching(session.coach)
        self.coached = True
        self._comment = ""
        self._advised_at: Any = None  # the position for which there are odds or values
        self._odds: list[Odds] = []
        self._worths: dict[int, float | None] = {}

    def compose_board(self) -> ComposeResult:
        """Both hands; below, how it ended or what may come of it, the coach, and the games."""
        with Horizontal(id="hands"):
            yield Static(id="you", markup=False)
            yield Static(id="opponent", markup=False)
        with Vertical(id="below"):
            for name in ("outcome", "rule", "odds", "comment", "coach", "games"):
                yield Static(id=name, markup=False)
            yield NextButton(self.language.say("sette_screen.next"))

    def on_mount(self) -> None:  # Textual calls that of the base as well
        """Sit down; the game is solved meanwhile."""
        hand = self.table.hand
        self.run_worker(lambda: self.session.coach.hint(hand), thread=True)

    def on_resize(self, event: Resize) -> None:
        """There may be more room now, or less."""
        self.set_class(event.size.width >= _ROOMY[0] and event.size.height >= _ROOMY[1], "-roomy")
        self.call_after_refresh(self.refresh_table)

    # --- what is seen

    def draw(self, seen: SmallView) -> None:
        """The table."""
        if self._advised_at is not self.table.hand.state:
            self._odds, self._worths = [], {}
        say = self.language.say
        counts = seen.other_counts or self._counts_of_first()
        self._show("you", self._hand("you", seen.cards, seen.counts))
        self._show("opponent", self._hand("opponent", seen.other, counts))
        self._show("rule", say("sette_screen.rule", counts=counts, rule=seen.rule) if not seen.outcome else "")
        self._show("outcome", say(f"result.{seen.outcome}") if seen.outcome else "")
        self.set_class(seen.outcome is not None, "-over")
        self._show("odds", self._odds_text() if not seen.outcome else "")
        self._show("comment", self._comment)
        self.query_one("#comment").set_class(bool(self._comment), "-heard")
        self._show("coach", self._coach_text())
        score = self.table.score
        lost = score.games - score.wins[0] - score.ties
        self._show("games", say("sette_screen.games", games=score.games, won=score.wins[0], tied=score.ties, lost=lost))

    def _show(self, name: str, text: str) -> None:
        widget = self.query_one(f"#{name}", Static)
        widget.update(text)
        widget.display = bool(text)

    def _counts_of_first(self) -> str:
        return points_text(int(self.table.hand.state[0]["opponent_score"]))

    def _hand(self, whose: str, cards: tuple[str, ...], counts: str) -> str:
        key = _WHOSE[whose][float(counts) > _MOST]
        faces = [f"{card} ½" if card in _FACES else card for card in cards]
        return "\n".join([self.language.say(key, counts=counts), *boxes(faces, self.has_class("-roomy"))])

    def _odds_text(self) -> str:
        say = self.language.say
        if not self._odds:
            return say("sette_screen.no_odds")
        outcomes = [say(f"sette_screen.{name}") for name in self._odds[0].chances]
        lines = [f"{'':<12}" + "".join(f"{name:>9}" for name in outcomes)]
        for odds in self._odds:
            chances = "".join(f"{100 * chance:8.1f}%" for chance in odds.chances.values())
            lines.append(f"{self.speech.action(odds.action or 0):<12}" + chances)
        return "\n".join([say("sette_screen.odds"), *lines])

    def _coach_text(self) -> str:
        found = self.coaching
        return self.language.say(
            "sette_screen.coach_on" if self.coached else "sette_screen.coach_off",
            decisions=found.decisions,
            mistakes=found.mistakes,
            cost=f"{found.cost:.3f}",
        )

    def action_buttons(self, legal: list[int]) -> list[tuple[int, str]]:
        """The actions with their letters, and what they are worth when that was asked."""
        return [(action, self._button(action)) for action in legal]

    def _button(self, action: int) -> str:
        say = self.language.say
        text = say("sette_screen.action", action=self.speech.action(action), letter=_LETTERS[action])
        if action not in self._worths:
            return text
        worth = say("sette_screen.worth", value=self.speech.value(self._worths[action]))
        return f"{text}\n{worth}"

    # --- what can be done

    def action_do(self, action: int) -> None:
        """The action of a letter."""
        self.choose(action)

    def action_undo(self) -> None:
        """See `TableScreen`; the coach forgets it too."""
        super().action_undo()
        moves = len(self.table.hand.moves)
        if self.coaching.take_back(self.table.number, moves):
            self._comment = ""
            self.refresh_table()

    def show_hint(self, worths: list[Worth]) -> None:
        """Values on the buttons."""
        self._keep_advice()
        self._worths = {worth.action: worth.value for worth in worths}
        self.query_one("#log", RichLog).write(self.speech.hint(worths))

    def show_odds(self, found: list[Odds]) -> None:
        """Odds below the cards."""
        self._keep_advice()
        self._odds = found

    def _keep_advice(self) -> None:
        if self._advised_at is not self.table.hand.state:
            self._odds, self._worths, self._advised_at = [], {}, self.table.hand.state

    # --- the coach

    def action_coach(self) -> None:
        """Let the coach look on, or not."""
        self.coached = not self.coached
        self._comment = ""
        self.refresh_table()

    def _moved(self, move: Move) -> None:
        super()._moved(move)
        self._comment = ""
        if not self.coached or move.seat not in self.table.people:
            return
        hand, game, number = self.table.hand, self.table.number, len(self.table.hand.moves) - 1

        def look() -> None:
            judged = self.coaching.look(hand, number, move)
            if judged is not None:
                self.post_message(self.Judgement(hand, game, move, judged))

        self.run_worker(look, thread=True)

    @on(Judgement)
    def _heard(self, heard: Judgement) -> None:
        if heard.move not in heard.hand.moves:
            return  # it was taken back
        self.coaching.add(heard.game, heard.judged)
        if is_mistake(heard.judged):
            self._comment = self._remark(heard.judged)
            self.query_one("#log", RichLog).write(self._comment)
        self.refresh_table()

    def _remark(self, judged: Judged) -> str:
        value = next(worth.value for worth in judged.worths if worth.action == judged.action)
        return self.language.say(
            "sette_screen.mistake",
            action=self.speech.action(judged.action),
            cost=f"{judged.cost:.3f}",
            value=self.speech.value(value),
            best=self.speech.action(judged.best.action),
            best_value=self.speech.value(judged.best.value),
        )
