"""The table of Tressette: the trick at four places, what is known of each seat, and the own hand as cards."""

from __future__ import annotations

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, HorizontalGroup, Vertical
from textual.content import Content
from textual.events import Resize
from textual.widgets import Static

from cards.hand import Move
from evaluate.review.advisers import Worth
from play.app.keys import Key
from play.app.table.table import TableScreen
from play.app.widgets.cards import card_box
from play.app.widgets.seats import HandCard, SeatPlace
from play.app.widgets.tressette_panel import panel, result_lines
from play.views.tressette import TressetteView
from play.views.trick import BOTTOM, LEFT, RIGHT, TOP, Cursor, Place, Trick, cards_of, task, trick_of
from tressette.cards import parse_card
from tressette.rules import SEATS

_PLACES = {TOP: "top", LEFT: "left", RIGHT: "right", BOTTOM: "bottom"}
_LARGE = (150, 40)  # from this size of the terminal on, cards are drawn large
_HAND = 10


class GameScreen(TableScreen):
    """A table of Tressette. Cards are chosen by click, by digit, or pointed at and played."""

    CSS_PATH = "tressette.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "point(-1)", show=False, priority=True),
        Binding("right", "point(1)", show=False, priority=True),
        Binding("enter,space", "play_pointed", show=False, priority=True),
        Binding("l", "last_trick", show=False),
    ]
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("↵", "play_pointed", "play"),
        Key("t", "hint", "hint"),
        Key("u", "undo", "undo"),
        Key("l", "last_trick", "last"),
        Key("v", "review", "review"),
        Key("w", "save", "save"),
        Key("?", "help", "help"),
        Key("q", "stand_up", "leave"),
    )

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._cursor = Cursor()
        self._seen: TressetteView | None = None
        self._last: object = None  # the position in which the last trick is looked at
        self._hints: tuple[object, dict[str, Worth]] = (None, {})  # with the position that they are of
        self._refused: tuple[object, str] = (None, "")

    def compose_board(self) -> ComposeResult:
        """The table beside what is known, the hand below."""
        with Horizontal(id="table"):
            with Vertical(id="trick"):
                yield SeatPlace(id="top", classes="beside")
                with HorizontalGroup(id="sides"):
                    yield SeatPlace(id="left")
                    yield SeatPlace(id="right")
                yield SeatPlace(id="bottom", classes="beside")
            yield Static(id="known")
        with HorizontalGroup(id="hand"):
            yield Static(id="result")
            for number in range(_HAND):
                yield HandCard(number)

    # --- what is drawn

    def draw(self, seen: TressetteView) -> None:
        """Everything that the seat may see."""
        self._seen = seen
        trick = trick_of(seen, self._last == self._position)
        for where, place in enumerate(trick.places):
            label = self._label(place, where, trick, seen)
            self.query_one(f"#{_PLACES[where]}", SeatPlace).show(place, label, self._large, self._sign(place, seen))
        self.query_one("#known", Static).update(panel(self.language, seen, trick, self._names(), self._match()))
        self._draw_hand(seen)

    @property
    def _position(self) -> object:
        """What tells a position from all others of this table, to which hints and complaints belong."""
        return self.table.hand, len(self.table.hand.moves)

    @property
    def _large(self) -> bool:
        return self.size.width >= _LARGE[0] and self.size.height >= _LARGE[1]

    @property
    def _may_play(self) -> bool:
        return self.may_act and self.is_quiet

    def _names(self) -> list[str]:
        return [self.seat_name(seat) for seat in range(SEATS)]

    def _match(self) -> tuple[int, list[int]] | None:
        score, to = self.table.match_score, self.table.setup.match
        return None if score is None or to is None else (to, score)

    def title_text(self) -> str:
        """Game, match and seed: who sits where is on the board."""
        match = self._match()
        parts = [self.language.say("game.tressette"), self.language.say("app.seed", seed=self.table.setup.seed)]
        if match is not None:
            ours, (to, score) = self.viewer % 2, match
            told = {"to": to, "ours": score[ours], "theirs": score[1 - ours]}
            parts.insert(1, self.language.say("tressette_screen.match_title", hand=len(self.table.hands), **told))
        return " · ".join(parts)

    def _label(self, place: Place, where: int, trick: Trick, seen: TressetteView) -> Content:
        say, moves = self.language.say, place.seat == seen.turn
        lines = [f"{'▶ ' if moves else ''}{place.seat} {self.seat_name(place.seat)}"]
        lines += [say("tressette_screen.partner")] if where == TOP else []
        notes = [say("tressette_screen.leads")] if place.leads else []
        if place.highest:
            notes.append(say("tressette_screen.takes" if trick.complete else "tressette_screen.highest"))
        lines += notes if where in (TOP, BOTTOM) else [" · ".join(notes)]
        return Content.assemble((lines[0], "bold $text-accent" if moves else ""), *(f"\n{line}" for line in lines[1:]))

    def _sign(self, place: Place, seen: TressetteView) -> str:
        if place.seat != seen.turn:
            return ""
        return "?" if seen.turn in self.table.people else "…"

    def _draw_hand(self, seen: TressetteView) -> None:
        cards, legal = cards_of(seen), seen.legal if self._may_play else ()
        self._cursor.look(cards, legal, (self._position, self.viewer))
        hints = self._hints[1] if self._hints[0] == self._position else {}
        for number, box in enumerate(self.query(HandCard)):
            box.display = number < len(cards)
            if number >= len(cards):
                continue
            card = cards[number]
            pointed = bool(legal) and number == self._cursor.place
            barred = bool(legal) and card not in legal
            above, digit = self._worth(card, hints), str((number + 1) % _HAND)
            box.update(card_box(card, self._large, above, digit, chosen=pointed, barred=barred))
            box.set_class(number > 0 and cards[number - 1][1] != card[1], "-next-suit")
        over = self.table.hand.over
        self.query_one("#result").display = over
        if over:
            lines = result_lines(self.language, seen, self._match(), self.table.game_over)
            self.query_one("#result", Static).update(lines)

    def _worth(self, card: str, hints: dict[str, Worth]) -> str:
        worth = hints.get(card)
        if worth is None:
            return ""
        value = self.speech.value(worth.value)
        return f"★{value}" if worth.value == next(iter(hints.values())).value else value

    def on_resize(self, event: Resize) -> None:
        """Cards are drawn large where there is room."""
        self.set_class(event.size.width >= _LARGE[0] and event.size.height >= _LARGE[1], "-large")
        self._redraw()

    def _redraw(self) -> None:
        """Draw what was seen last: a player may be at the table now."""
        if self._seen is not None:
            self.draw(self._seen)

    # --- what one does

    def action_buttons(self, legal: list[int]) -> list[tuple[int, str]]:
        """None: cards are clicked."""
        return []

    def action_choose_nth(self, number: int) -> None:
        """The card of that number in the hand, from 0, whether it is legal or not."""
        cards = cards_of(self._seen) if self._seen is not None else []
        if number < len(cards):
            self._cursor.place = number
            self.choose(parse_card(cards[number]))

    @on(HandCard.Clicked)
    def _clicked(self, event: HandCard.Clicked) -> None:
        self.action_choose_nth(event.number)

    def action_point(self, by: int) -> None:
        """Point at the next card, to the left or to the right."""
        if self._seen is not None and self._may_play:
            self._cursor.step(cards_of(self._seen), by)
            self._redraw()

    def action_play_pointed(self) -> None:
        """Play the card that is pointed at; between hands, go on."""
        if self._may_play:
            self.action_choose_nth(self._cursor.place)
        else:
            self.action_next()

    def action_last_trick(self) -> None:
        """Look at the last trick, or at the table again."""
        self._last = None if self._last == self._position else self._position
        self._redraw()

    def stays_longer(self, move: Move) -> bool:
        """A complete trick does."""
        return int(move.after["plays"][0]) % SEATS == 0

    def show_hint(self, worths: list[Worth]) -> None:
        """On the cards: in the log, whoever sits down next would read them."""
        if not worths:
            super().show_hint(worths)
        self._hints = (self._position, {self.table.game.action_text(worth.action): worth for worth in worths})

    def complain(self, line: str) -> None:
        """In the line that says whose turn it is, until something is played."""
        self._refused = (self._position, line)
        self.refresh_table()

    def _prompt(self) -> str:
        told = super()._prompt()
        if self._refused[0] == self._position and not self._covered:
            return f"× {self._refused[1]} {told}"
        if self._seen is not None and self._may_play:
            return f"{told} {self.language.render(task(self._seen))}"
        return told
