"""Hidden cards of Briscola: the other hand and the stock except for the turned card."""

from typing import Any

import numpy as np

from busso.cards.compiled.bits import bit
from busso.cards.game import States


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Redeal the other hand and the stock in place; once the stock is empty, the other hand is known."""
    state: Any = states[0]
    drawn, other = int(state["drawn"]), 1 - seat
    if drawn == 40:
        return
    held = [card for card in range(40) if int(state["hands"][other]) >> card & 1]
    cards = random.permutation([*held, *state["deck"][drawn:39]])
    state["hands"][other] = sum(int(bit(card)) for card in cards[: len(held)])
    state["deck"][drawn:39] = cards[len(held) :]
