"""What the games of one player against a fixed rule have in common at the table."""

from __future__ import annotations

from dataclasses import dataclass

from cards.hand import Hand, Move
from play.language import Message, message

OUTCOMES = {1: "win", 0: "tie", -1: "lose"}


@dataclass(frozen=True)
class SmallView:
    """The player's cards in the order drawn with what they count, and those of the other side that are open.

    `soft`: an ace counts 11. `other_counts` and `outcome` (win, tie, lose) are there when the game is over. `rule` says
    when the other side stops.
    """

    seat: int
    turn: int | None
    legal: tuple[str, ...]
    cards: tuple[str, ...]
    counts: str
    soft: bool
    other: tuple[str, ...]
    other_counts: str | None
    rule: Message
    outcome: str | None


def legal_texts(hand: Hand) -> tuple[str, ...]:
    """The names of the legal actions."""
    return tuple(map(hand.game.action_text, hand.legal))


def outcome(hand: Hand) -> str | None:
    """How the game ended for the player."""
    return OUTCOMES[round(hand.returns()[0])] if hand.over else None


def action_event(hand: Hand, move: Move) -> Message:
    """What the player did."""
    return message("event.action", seat=move.seat, action=hand.game.action_text(move.action))
