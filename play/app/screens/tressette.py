"""Tressette table: the trick at four places, public knowledge of each seat, and the own hand as cards."""

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Horizontal, HorizontalGroup, Vertical
from textual.content import Content
from textual.events import Click
from textual.widgets import Static

from busso.play.app.board import Board
from busso.play.app.table import HELP, HINT, LEAVE, REVIEW, SAVE, UNDO, TableScreen
from busso.play.app.widgets.keys import Key, bound
from busso.play.app.widgets.lines import Lines
from busso.play.language import Language
from busso.play.table.speech import Speech
from busso.play.views.tressette import (
    BOTTOM,
    LEFT,
    RIGHT,
    SUIT_SIGNS,
    TOP,
    Cursor,
    Place,
    TressetteView,
    Trick,
    cards_of,
    facts,
    suit_name,
    task,
    trick_of,
)
from busso.tressette.cards import parse_card
from busso.tressette.rules import SEATS

SMALL, LARGE = 7, 9  # widths
_PLAIN, _CHOSEN, _BARRED, _EMPTY = "╭─╮│╰╯", "╔═╗║╚╝", "╭╌╮╎╰╯", "╭┈╮┊╰╯"
_COLOURS = {"D": "$text-warning", "C": "$text-error", "S": "$text-primary", "B": "$text-success"}
_NAME = 25  # cells of a seat's number and name
Match = tuple[int, list[int]]  # target, and score by team
_PLACES = {TOP: "top", LEFT: "left", RIGHT: "right", BOTTOM: "bottom"}
_HAND = 10


class SeatPlace(Container):
    """Place of a seat: a label of a few lines, and a card or its empty place."""

    def compose(self) -> ComposeResult:
        yield Lines(classes="who")
        yield Lines(classes="card")

    def show(self, place: Place, label: Content, large: bool, sign: str) -> None:
        """Show a place; `sign` marks where a card is awaited."""
        lies = empty_box(large, sign) if place.card is None else card_box(place.card, large, chosen=place.highest)
        self.query_one(".who", Static).update(label)
        self.query_one(".card", Static).update(lies)


def card_box(
    card: str, large: bool, above: str = "", below: str = "", chosen: bool = False, barred: bool = False
) -> Content:
    """Draw a card with texts in its upper and lower edge; a barred one has a broken frame and a cross."""
    width = (LARGE if large else SMALL) - 2
    rank, suit = card[0], card[1]
    mark = "×" if barred else " "
    style = "dim" if barred else f"bold {_COLOURS[suit]}"
    lines = [rank.center(width)[:-1] + mark, f"{SUIT_SIGNS[suit]} {suit}".center(width)]
    if large:
        lines = [lines[0], "", SUIT_SIGNS[suit].center(width), suit_name(suit).center(width)]
    frame = _CHOSEN if chosen else _BARRED if barred else _PLAIN
    return _box(lines, width, frame, (above, below), style, "dim" if barred and not chosen else "")


def empty_box(large: bool, sign: str) -> Content:
    """Draw the place of a card not yet played."""
    width = (LARGE if large else SMALL) - 2
    lines = [sign.center(width), ""] if not large else ["", sign.center(width), "", ""]
    return _box(lines, width, _EMPTY, ("", ""), "bold", "dim")


def _box(lines: list[str], width: int, frame: str, edges: tuple[str, str], style: str, frame_style: str) -> Content:
    side = (frame[3], frame_style)
    parts: list[tuple[str, str] | str] = _edge(frame[:3], edges[0], width, frame_style)
    for text in lines:
        parts += ["\n", side, (text.ljust(width), style), side]
    return Content.assemble(*parts, "\n", *_edge(frame[4] + frame[1] + frame[5], edges[1], width, frame_style))


def _edge(frame: str, text: str, width: int, style: str) -> list[tuple[str, str] | str]:
    """Draw an upper or lower edge, with its text brighter than the line."""
    inner = text[:width]
    before = (width - len(inner) + 1) // 2
    left, right = frame[0] + frame[1] * before, frame[1] * (width - before - len(inner)) + frame[2]
    return [(left, style), (inner, "bold"), (right, style)]


def panel(language: Language, seen: TressetteView, trick: Trick, names: Sequence[str], match: Match | None) -> Content:
    """Return the lines beside the trick; `names` are those of the seats."""
    ours = seen.seat % 2
    say = language.say
    key = "tressette_screen.last_trick" if trick.complete else "tressette_screen.trick"
    sides = say("tressette_screen.we"), say("tressette_screen.they")
    lines = [_row(say(key, number=trick.number), sides, "bold")]
    lines.append(_row(say("tressette_screen.points"), _sides(seen.points, ours)))
    lines.append(_row(say("tressette_screen.thirds"), _sides(seen.thirds, ours)))
    if match is not None:
        lines.append(_row(say("tressette_screen.match", to=match[0]), _sides(match[1], ours)))
    for k in range(SEATS):
        seat = (seen.seat + k) % SEATS
        lines += _seat(language, seen, seat, names[seat])
    return Content("\n").join(lines)


def _sides(numbers: Sequence[int], ours: int) -> tuple[str, str]:
    return str(numbers[ours]), str(numbers[1 - ours])


def _row(name: str, sides: tuple[str, str], style: str = "") -> Content:
    return Content.styled(f"{name:<22}{sides[0]:>6}{sides[1]:>7}", style)


def _seat(language: Language, seen: TressetteView, seat: int, name: str) -> list[Content]:
    cards = language.say("tressette_screen.cards", number=seen.cards_left[seat])
    turn = seen.turn == seat
    head = f"{'▶' if turn else ' '} {seat} {name}"
    head = head if len(head) <= _NAME else f"{head[: _NAME - 1]}…"
    lines = [Content.assemble((f"{head:<{_NAME + 1}}", "bold" if turn else ""), cards)]
    known = " · ".join(map(language.render, facts(seen, seat)))
    return [*lines, Content(f"    {known}")] if known or seat != seen.seat else lines


def result_lines(language: Language, seen: TressetteView, match: Match | None, game_over: bool) -> Content:
    """Describe the result of the hand, and the score of the match or its winner."""
    ours, say = seen.seat % 2, language.say
    mine, theirs = seen.points[ours], seen.points[1 - ours]
    lines = [(say("tressette_screen.hand_over", ours=mine, theirs=theirs), "bold")]
    if match is None:
        key = "tressette_screen.won" if mine > theirs else "tressette_screen.lost"
        return Content.assemble(*lines, (f"\n{say(key)}", "bold"))
    to, score = match
    key = "tressette_screen.match_on"
    if game_over:
        key = "tressette_screen.match_won" if score[ours] > score[1 - ours] else "tressette_screen.match_lost"
    told = say(key, to=to, ours=score[ours], theirs=score[1 - ours])
    return Content.assemble(*lines, "\n", (told, "bold reverse" if game_over else ""))


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

    @property
    def position(self) -> object:
        """Key that distinguishes the position from all others of this table."""
        return self.table.hand, len(self.table.hand.moves)

    @property
    def match(self) -> Match | None:
        score, to = self.table.match_score, self.table.setup.match
        return None if score is None or to is None else (to, score)

    @property
    def _large(self) -> bool:
        return self.screen.has_class("-roomy")

    def draw(self, seen: TressetteView) -> None:
        trick = trick_of(seen, self._last == self.position)
        for where, place in enumerate(trick.places):
            label = self._label(place, where, trick, seen)
            sign = "" if place.seat != seen.turn else "?" if seen.turn in self.table.people else "…"
            self.query_one(f"#{_PLACES[where]}", SeatPlace).show(place, label, self._large, sign)
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
        if self._refused[0] == self.board.position and not self.covered:
            return f"× {self._refused[1]} {told}"
        if self.board.seen is not None and self.legal():
            return f"{told} {self.language.render(task(self.board.seen))}"
        return told

    def reject(self, line: str) -> None:
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
