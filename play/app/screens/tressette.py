"""Tressette table: the trick at four places, public knowledge of each seat, and the own hand as cards."""

from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, HorizontalGroup, Vertical
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from busso.cards.hand import Move
from busso.play.app.table.board import Board
from busso.play.app.table.table import HELP, HINT, LEAVE, REVIEW, SAVE, UNDO, TableScreen
from busso.play.app.widgets.cards import SeatPlace, card_box
from busso.play.app.widgets.keys import Key, bound
from busso.play.app.widgets.lines import Lines
from busso.play.app.widgets.tressette_panel import panel, result_lines
from busso.play.table.speech import Speech
from busso.play.views.tressette import TressetteView
from busso.play.views.trick import BOTTOM, LEFT, RIGHT, TOP, Cursor, Place, Trick, cards_of, task, trick_of
from busso.tressette.cards import parse_card
from busso.tressette.rules import SEATS

_PLACES = {TOP: "top", LEFT: "left", RIGHT: "right", BOTTOM: "bottom"}
_HAND = 10


class GameBoard(Board):
    """Trick, public knowledge, and hand. Cards are chosen by click or digit, or with arrows and Enter."""

    ROOMY = (150, 40)  # size from which cards are drawn large
    ADVISES = True
    seen: TressetteView | None

    def __init__(self, speech: Speech) -> None:
        super().__init__(speech)
        self.cursor = Cursor()
        self._last: object = None  # the position at which the last trick is shown

    def compose(self) -> ComposeResult:
        with Horizontal(id="table"):
            with Vertical(id="trick"):
                yield SeatPlace(id="top", classes="beside")
                with HorizontalGroup(id="sides"):
                    yield SeatPlace(id="left")
                    yield SeatPlace(id="right")
                yield SeatPlace(id="bottom", classes="beside")
            yield Lines(id="known")
        with HorizontalGroup(id="hand"):
            yield Lines(id="result")
            for number in range(_HAND):
                yield Lines(id=f"card-{number + 1}", name=str(number), classes="held")

    def buttons(self) -> list[tuple[int, str]]:
        """Return no buttons: cards are clicked."""
        return []

    def stays_longer(self, move: Move) -> bool:
        """Return True for a complete trick."""
        return int(move.after["plays"][0]) % SEATS == 0

    @property
    def position(self) -> object:
        """Key that distinguishes the position from all others of this table."""
        return self.table.hand, len(self.table.hand.moves)

    @property
    def match(self) -> tuple[int, list[int]] | None:
        """Target and score of the match."""
        score, to = self.table.match_score, self.table.setup.match
        return None if score is None or to is None else (to, score)

    @property
    def _large(self) -> bool:
        return self.screen.has_class("-roomy")

    def draw(self, seen: TressetteView) -> None:
        trick = trick_of(seen, self._last == self.position)
        for where, place in enumerate(trick.places):
            label = self._label(place, where, trick, seen)
            self.query_one(f"#{_PLACES[where]}", SeatPlace).show(place, label, self._large, self._sign(place, seen))
        names = [self.speech.seat_name(seat, self.viewer) for seat in range(SEATS)]
        self.query_one("#known", Static).update(panel(self.language, seen, trick, names, self.match))
        self._draw_hand(seen)

    def _label(self, place: Place, where: int, trick: Trick, seen: TressetteView) -> Content:
        say, moves = self.language.say, place.seat == seen.turn
        lines = [f"{'▶ ' if moves else ''}{place.seat} {self.speech.seat_name(place.seat, self.viewer)}"]
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
        cards, legal = cards_of(seen), seen.legal if self.legal else ()
        self.cursor.look(cards, legal, (self.position, self.viewer))
        for number, box in enumerate(self.query(".held").results(Static)):
            box.display = number < len(cards)
            if number >= len(cards):
                continue
            card = cards[number]
            pointed = bool(legal) and number == self.cursor.place
            barred = bool(legal) and card not in legal
            digit = str((number + 1) % _HAND)
            box.update(card_box(card, self._large, self._worth(card), digit, chosen=pointed, barred=barred))
            box.set_class(number > 0 and cards[number - 1][1] != card[1], "-next-suit")
        over = self.table.hand.over
        self.put("result", result_lines(self.language, seen, self.match, self.table.game_over) if over else "")

    def _worth(self, card: str) -> str:
        action = parse_card(card)
        if action not in self.worths:
            return ""
        value = self.speech.value(self.worths[action])
        return f"★{value}" if self.worths[action] == next(iter(self.worths.values())) else value

    def choose_nth(self, number: int) -> None:
        """Choose a card by its number in the hand, from 0, legal or not."""
        cards = cards_of(self.seen) if self.seen is not None else []
        if number < len(cards):
            self.cursor.place = number
            self.post_message(self.Chosen(parse_card(cards[number])))

    @on(Click, ".held")
    def _clicked(self, event: Click) -> None:
        self.choose_nth(int((event.widget and event.widget.name) or 0))

    def point(self, by: int) -> None:
        """Move the pointer `by` cards, negative to the left."""
        if self.seen is not None and self.legal:
            self.cursor.step(cards_of(self.seen), by)
            self.redraw()

    def turn_last_trick(self) -> None:
        """Switch between the last trick and the table."""
        self._last = None if self._last == self.position else self.position
        self.redraw()


class GameScreen(TableScreen):
    """Screen of Tressette."""

    BOARD = GameBoard
    board: GameBoard
    KEYS: ClassVar[tuple[Key, ...]] = (
        Key("↵", "play_pointed", "play", also="space"),
        HINT,
        UNDO,
        Key("l", "last_trick", "last"),
        REVIEW,
        SAVE,
        HELP,
        LEAVE,
    )
    BINDINGS: ClassVar[list[BindingType]] = [
        *bound(KEYS, before=("↵",)),
        Binding("left", "point(-1)", show=False, priority=True),
        Binding("right", "point(1)", show=False, priority=True),
    ]

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._refused: tuple[object, str] = (None, "")  # the position, and why a card was refused

    def title_text(self) -> str:
        """Return the game, match and seed; the board has the names."""
        say, match = self.language.say, self.board.match
        parts = [say("game.tressette"), say("app.seed", seed=self.table.setup.seed)]
        if match is not None:
            ours, (to, score) = self.viewer % 2, match
            told = {"to": to, "ours": score[ours], "theirs": score[1 - ours]}
            parts.insert(1, say("tressette_screen.match_title", hand=len(self.table.hands), **told))
        return " · ".join(parts)

    def prompt_text(self) -> str:
        """Include why a card was refused, and the allowed cards."""
        told = super().prompt_text()
        if self._refused[0] == self.board.position and not self._covered:
            return f"× {self._refused[1]} {told}"
        if self.board.seen is not None and self.legal():
            return f"{told} {self.language.render(task(self.board.seen))}"
        return told

    def complain(self, line: str) -> None:
        """Show the message in the prompt until something is played."""
        self._refused = (self.board.position, line)
        self.refresh_table()

    def action_choose_nth(self, number: int) -> None:
        self.board.choose_nth(number)

    def action_point(self, by: int) -> None:
        self.board.point(by)

    def action_play_pointed(self) -> None:
        if self.legal():
            self.board.choose_nth(self.board.cursor.place)
        else:
            self.action_next()

    def action_last_trick(self) -> None:
        self.board.turn_last_trick()
