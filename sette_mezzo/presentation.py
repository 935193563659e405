"""How Sette e mezzo is shown, see `busso.cards.presentation`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from busso.cards.hand import Hand
from busso.cards.presentation import Presentation, Row
from busso.sette_mezzo.cards import RANK_TEXT, points_text


def _rows(hand: Hand, seat: int) -> Iterator[Row]:
    state, record = hand.state[0], hand.record()
    yield Row("cards", tuple(record["player"]), cards=True)
    yield Row("points", (points_text(int(state["score"])),))
    yield Row("opponent", tuple(record["opponent"]), cards=True)
    yield Row("limit", (f"the opponent stops at {points_text(int(state['limit']))}",))


def _known(state: np.void, seat: int) -> dict[str, Any]:
    return {"points": int(state["score"]) / 2, "opponent": RANK_TEXT[int(state["opponent_rank"])]}


PRESENTATION = Presentation(rows=_rows, known=_known, offered={"limit": (3.0, 4.0, 4.5, 5.0, 5.5, 6.0, 7.0)})
