"""Corellian Spike: all seats with their credits, the own cards, what every action costs, and every hand's end."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import events as textual_events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import RichLog, Static

from cards.hand import Move
from evaluate.review.advisers import Worth
from play.app.keys import Key
from play.app.table.lines import LinesScreen
from play.app.table.next import NextButton
from play.app.table.table import TableScreen
from play.app.widgets.spike_text import SpikeText
from play.coach.hints import Odds
from play.language import Language
from play.table.session import Session
from play.views import events, view
from play.views.spike import SpikeView
from play.views.spike_board import Ending, compile_rules, costs, endings, signed, sums_after
from spike.cards import BUY, DISCARD, FOLD, MATCH, NO_BUY, RAISE, SWAP_HIGHER, SWAP_LOWER, SWAP_SPIKE

LETTERS = {
    RAISE: "r",
    MATCH: "m",
    FOLD: "f",
    BUY: "b",
    NO_BUY: "x",
    DISCARD: "d",
    SWAP_SPIKE: "s",
    SWAP_LOWER: "l",
    SWAP_HIGHER: "h",
}
_NAMES = {RAISE: "raise", FOLD: "fold", BUY: "buy", NO_BUY: "no_buy", DISCARD: "discard"}
_NEWS = 2
_ROOMY = 160, 50  # from this size on eight seats have borders and lines between them


class GameScreen(TableScreen):
    """A table of Corellian Spike. The end of a hand stays until Enter."""

    CSS_PATH = "spike.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(letter, f"do({action})", show=False) for action, letter in LETTERS.items()),
        Binding("g", "log", show=False),
    ]
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("t", "hint", "hint"),
        Key("o", "odds", "odds"),
        Key("u", "undo", "undo"),
        Key("v", "review", "review"),
        Key("g", "log", "log"),
        Key("?", "help", "help"),
        Key("q", "stand_up", "leave"),
    )

    def __init__(self, session: Session, language: Language, pace: float) -> None:
        super().__init__(session, language, pace)
        self._ends: list[Ending] = []  # to be looked at, one after another
        self._said: list[str] = []
        self._advised_at: Any = None  # the position for which there are odds or values
        self._odds: float | None = None
        self._worths: dict[int, float | None] = {}

    def compose_board(self) -> ComposeResult:
        """How the hand stands, the seats, and the own cards; after a hand, what goes on to the next."""
        for name in ("standing", "seats", "own"):
            yield Static(id=name, markup=False)
        yield NextButton(self.language.say("spike_screen.next"))

    def on_mount(self) -> None:  # Textual calls that of the base as well
        """Sit down; what the first showdown needs is compiled meanwhile."""
        hand = self.table.hand
        self.run_worker(lambda: compile_rules(hand), thread=True)

    def on_resize(self, event: textual_events.Resize) -> None:
        """There may be more room now, or less."""
        self.set_class(event.size.width >= _ROOMY[0] and event.size.height >= _ROOMY[1], "-roomy")
        self.call_after_refresh(self.refresh_table)

    # --- what is seen

    def draw(self, seen: SpikeView) -> None:
        """The table, or the end of a hand while somebody looks at it."""
        if self._advised_at is not self._position():
            self._odds, self._worths = None, {}
        text, names = SpikeText(self.language, self.has_class("-roomy")), self._names()
        end = self._ends[0] if self._ends and (self.waits or self.table.hand.over) else None
        self.set_class(end is not None, "-over")
        self.set_class(bool(self._worths), "-hinted")
        standing, seats, own = (self.query_one(f"#{name}", Static) for name in ("standing", "seats", "own"))
        if end is not None:
            standing.update(text.ending(end, names))
            seats.update(text.shown(end, names))
            return
        standing.update(text.standing(seen))
        seats.update(text.seats(seen, names))
        own.update(text.own(seen, self._notes()))

    def _position(self) -> Any:
        return self.table.hand.state  # another array after every move

    def _names(self) -> list[str]:
        return [self.seat_name(seat) for seat in range(len(self.table.setup.seats))]

    def _notes(self) -> list[str]:
        """Odds, and what the numbers on the buttons are."""
        say, notes = self.language.say, []
        if self._odds is not None:
            notes += [say("spike_screen.odds", chance=f"{100 * self._odds:.1f}%"), say("spike_screen.odds_if")]
        if self._worths:
            notes.append(say("spike_screen.worths"))
        return notes

    def title_text(self) -> str:
        """Game, how many sit at it, seed."""
        say = self.language.say
        seats = len(view(self.table.hand, self.viewer).seats)
        seed = say("app.seed", seed=self.table.setup.seed)
        return say("spike_screen.title", game=say("game.spike"), seats=seats, seed=seed)

    # --- what can be done

    def action_buttons(self, legal: list[int]) -> list[tuple[int, str]]:
        """The actions with their letters and what comes of them."""
        if not legal:
            return []
        seen = view(self.table.hand, self.viewer)
        prices, sums = costs(self.table.hand), sums_after(seen)
        return [(action, self._button(seen, action, prices.get(action), sums.get(action))) for action in legal]

    def _button(self, seen: SpikeView, action: int, price: int | None, total: int | None) -> str:
        def say(name: str, **values: object) -> str:
            return self.language.say(f"spike_screen.{name}", **values)

        letter = LETTERS[action]
        if action == MATCH:
            first = say("match" if price else "check", letter=letter)
        elif action in _NAMES:
            first = say(_NAMES[action], letter=letter)
        else:
            spike = seen.seats[seen.seat].spike
            card = {SWAP_SPIKE: spike or 0, SWAP_LOWER: seen.own[0], SWAP_HIGHER: seen.own[1]}[action]
            first = say("swap", card=signed(card), letter=letter)
        lines = [first, say("out") if action == FOLD else say("costs", credits=price) if price else say("free")]
        if total is not None:
            lines[1] = say("gives", sum=signed(total))
        if action in self._worths:
            lines.append(say("worth", value=self.speech.value(self._worths[action])))
        return "\n".join(lines)

    def action_do(self, action: int) -> None:
        """The action of a letter."""
        self.choose(action)

    def show_hint(self, worths: list[Worth]) -> None:
        """Values on the buttons."""
        self._keep_advice()
        self._worths = {worth.action: worth.value for worth in worths}
        if len(self.table.people) == 1:  # nobody else reads what may be told to this seat alone
            self.query_one("#log", RichLog).write(self.speech.hint(worths))

    def show_odds(self, found: list[Odds]) -> None:
        """Odds beside the cards."""
        self._keep_advice()
        self._odds = found[0].chances["showdown"] if found else None

    def _keep_advice(self) -> None:
        if self._advised_at is not self._position():
            self._odds, self._worths, self._advised_at = None, {}, self._position()

    # --- what happens

    def tell(self, lines: list[str]) -> None:
        """What was said, with what was said before as far as there is room."""
        super().tell(lines)
        self._said = [*self._said, *lines][-_NEWS:]
        self.query_one("#news", Static).update("\n".join(self._said))

    def stays_longer(self, move: Move) -> bool:
        """When dice fall."""
        return any(told.key.startswith("event.dice") for told in events(self.table.hand, move))

    def waits_for(self, move: Move) -> str | None:
        """The end of a hand is looked at until Enter; that of the last one stays anyway."""
        found = endings(self.table.hand, move)
        self._ends = found or self._ends
        return self._held() if found and not (self.table.hand.over and len(found) == 1) else None

    def _held(self) -> str:
        return self.language.say("spike_screen.held", hand=self._ends[0].number)

    def action_next(self) -> None:
        """On; to the next end, when several hands ended at once."""
        if self.waits and len(self._ends) > 1:
            del self._ends[0]
            if len(self._ends) > 1 or not self.table.hand.over:
                self._waits = self._held()
                self.refresh_table()
                return
        super().action_next()

    def action_log(self) -> None:
        """All that has happened in this game."""
        hand = self.table.hand
        lines = [line for move in hand.moves for line in self.speech.lines(events(hand, move))]
        say = self.language.say
        self.app.push_screen(LinesScreen(say("spike_screen.log"), lines or [say("spike_screen.no_log")], self.language))
