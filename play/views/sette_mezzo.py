"""Sette e mezzo as the player sees it."""

from __future__ import annotations

from cards.hand import Hand, Move
from play.language import Message, message
from play.views.small import SmallView, action_event, legal_texts, outcome
from sette_mezzo.cards import points_text
from sette_mezzo.rules import HIT


def view(hand: Hand, seat: int) -> SmallView:
    """What the player may see; all cards lie open, and the opponent draws when the player has stopped."""
    state, record = hand.state[0], hand.record()
    return SmallView(
        seat=seat,
        turn=hand.turn,
        legal=legal_texts(hand),
        cards=tuple(record["player"]),
        counts=points_text(int(state["score"])),
        soft=False,
        other=tuple(record["opponent"]),
        other_counts=points_text(int(state["opponent_score"])) if hand.over else None,
        rule=message("rule.limit", limit=points_text(int(state["limit"]))),
        outcome=outcome(hand),
    )


def events(hand: Hand, move: Move) -> list[Message]:
    """What the player did, and the card drawn."""
    found = [action_event(hand, move)]
    if move.action == HIT:
        number = sum(each.action == HIT for each in hand.moves[: hand.moves.index(move) + 1])
        card = hand.record()["player"][number]
        found.append(message("event.drawn", card=card, counts=points_text(int(move.after[0]["score"]))))
    return found


def result(hand: Hand) -> list[Message]:
    """Both sides' cards, and who has won."""
    state, record = hand.state[0], hand.record()
    return [
        message("result.cards", cards=" ".join(record["player"]), counts=points_text(int(state["score"]))),
        message(
            "result.opponent",
            cards=" ".join(record["opponent"]),
            counts=points_text(int(state["opponent_score"])),
        ),
        message(f"result.{outcome(hand)}"),
    ]
