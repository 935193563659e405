"""Presentation of Blackjack (see `busso.cards.presentation`)."""

from collections.abc import Iterator

from busso.cards.hand import Hand
from busso.cards.presentation import Presentation, Row


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    state, record = hand.state[0], hand.record()
    yield Row("cards", tuple(record["player"]), cards=True)
    yield Row("sum", (f"{'soft ' if state['soft'] else ''}{int(state['sum'])}",))
    yield Row("dealer", tuple(record["dealer"] if hand.over else record["dealer"][:1]), cards=True)


PRESENTATION = Presentation(
    rows=_rows,
    offered={"decks": ("infinite", 1, 2, 4, 6, 8), "discount": (0.9, 0.95, 0.99, 1.0)},
)
