"""Any game: the observation as text, the legal actions as a list."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cards.hand import Hand, Move
from play.language import Message, message


@dataclass(frozen=True)
class GenericView:
    """`observation` are the bits that the seat may know, as 0 and 1 in groups of eight; see the game's own table."""

    seat: int
    turn: int | None
    observation: str
    legal: tuple[str, ...]


def view(hand: Hand, seat: int) -> GenericView:
    """What the seat may see."""
    words = hand.game.observe(hand.state, seats=np.array([seat], np.uint8))[0]
    bits = "".join(str(int(words[k // 64]) >> k % 64 & 1) for k in range(hand.game.bits))
    groups = " ".join(bits[k : k + 8] for k in range(0, len(bits), 8))
    legal = tuple(map(hand.game.action_text, hand.legal)) if hand.turn == seat else ()
    return GenericView(seat, hand.turn, groups, legal)


def events(hand: Hand, move: Move) -> list[Message]:
    """What the seat did."""
    return [message("event.action", seat=move.seat, action=hand.game.action_text(move.action))]


def result(hand: Hand) -> list[Message]:
    """The result of each seat."""
    return [
        message("result.seat", seat=seat, value=f"{value:+g}", unit=hand.game.unit)
        for seat, value in enumerate(hand.returns())
    ]
