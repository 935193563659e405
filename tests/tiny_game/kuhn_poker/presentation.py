"""How Kuhn poker is shown, see `busso.cards.presentation`."""

from collections.abc import Iterator

import numpy as np
from kuhn_poker.rules import ACTION_TEXT, CARD_TEXT

from busso.cards.game import Game
from busso.cards.hand import Hand
from busso.cards.presentation import Presentation, Row


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    yield Row("own card", (CARD_TEXT[hand.start[0]["cards"][seat]],), cards=True)
    yield Row("played", tuple(ACTION_TEXT[action] for action in hand.actions) or ("nothing",))


def _situation(game: Game, state: np.void, seat: int) -> str:
    return f"own card {CARD_TEXT[state['cards'][seat]]}"


PRESENTATION = Presentation(
    rows=_rows,
    situation=_situation,
    phases=("first action", "second action", "third action"),
    phase=lambda states: states["moves"].astype(np.int64),
)
