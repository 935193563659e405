"""Tressette cards as text boxes with rank, suit letter and sign; the frame shows their state."""

from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.widgets import Static

from busso.play.app.widgets.lines import Lines
from busso.play.views.trick import SUIT_SIGNS, Place, suit_name

SMALL, LARGE = 7, 9  # widths
_PLAIN, _CHOSEN, _BARRED, _EMPTY = "╭─╮│╰╯", "╔═╗║╚╝", "╭╌╮╎╰╯", "╭┈╮┊╰╯"
_COLOURS = {"D": "$text-warning", "C": "$text-error", "S": "$text-primary", "B": "$text-success"}


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


def empty_box(large: bool, sign: str = "") -> Content:
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
