"""Place at the Tressette table: a seat's player and card."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Container
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.widgets import Static

from busso.play.app.widgets.cards import card_box, empty_box
from busso.play.app.widgets.lines import Lines
from busso.play.views.trick import Place


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


class HandCard(Lines):
    """Clickable card of the own hand, hidden without a card."""

    class Clicked(Message):
        """This card was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number  # from 0, in the row

    def __init__(self, number: int) -> None:
        super().__init__(id=f"card-{number + 1}", classes="card")
        self.number = number

    def on_click(self, event: Click) -> None:
        """Post `Clicked`."""
        event.stop()
        self.post_message(self.Clicked(self.number))
