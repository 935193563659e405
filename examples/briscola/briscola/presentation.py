"""How Briscola is shown, see `busso.cards.presentation`."""

from collections.abc import Iterator

import numpy as np

from briscola.rules import CARD_TEXT, CARDS
from busso.cards.game import Game
from busso.cards.hand import Hand
from busso.cards.presentation import Presentation, Row


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    state = hand.state[0]
    left = f"{CARDS - int(state['drawn'])} cards in the stock"
    yield Row("trumps", (f"turned {CARD_TEXT[state['deck'][-1]]}", left))
    yield Row("points", (f"own {state['points'][seat]}", f"other {state['points'][1 - seat]}"))
    yield Row("table", (_table(state),))
    yield Row(
        "hand", tuple(CARD_TEXT[card] for card in range(CARDS) if int(state["hands"][seat]) >> card & 1), cards=True
    )


def _table(state: np.void) -> str:
    return next((CARD_TEXT[card] for card in state["trick"] if card < CARDS), "nothing")


def _situation(game: Game, state: np.void, seat: int) -> str:
    return f"{_table(state)} on the table, trumps {CARD_TEXT[state['deck'][-1]]}"


PRESENTATION = Presentation(rows=_rows, situation=_situation)
