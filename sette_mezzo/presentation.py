"""Presentation of Sette e mezzo (see `busso.cards.presentation`)."""

from collections.abc import Iterator

from busso.cards.hand import Hand
from busso.cards.presentation import Presentation, Row
from busso.sette_mezzo.cards import points_text


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    state, record = hand.state[0], hand.record()
    yield Row("cards", tuple(record["player"]), cards=True)
    yield Row("points", (points_text(int(state["score"])),))
    yield Row("opponent", tuple(record["opponent"]), cards=True)
    yield Row("limit", (f"the opponent stops at {points_text(int(state['limit']))}",))


PRESENTATION = Presentation(rows=_rows, offered={"limit": (3.0, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0)})
