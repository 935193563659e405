"""Blackjack as the player sees it."""

from __future__ import annotations

from blackjack.rules import HIT
from cards.hand import Hand, Move
from play.language import Message, message
from play.views.small import SmallView, action_event, legal_texts, outcome


def view(hand: Hand, seat: int) -> SmallView:
    """What the player may see: of the dealer's cards the first alone, until the game is over."""
    state, record = hand.state[0], hand.record()
    rule = "rule.soft_17_hit" if state["hits_soft_17"] else "rule.soft_17_stand"
    return SmallView(
        seat=seat,
        turn=hand.turn,
        legal=legal_texts(hand),
        cards=tuple(record["player"]),
        counts=str(int(state["sum"])),
        soft=bool(state["soft"]),
        other=tuple(record["dealer"] if hand.over else record["dealer"][:1]),
        other_counts=str(int(state["dealer_sum"])) if hand.over else None,
        rule=message(rule),
        outcome=outcome(hand),
    )


def events(hand: Hand, move: Move) -> list[Message]:
    """What the player did, and the card drawn."""
    found = [action_event(hand, move)]
    if move.action == HIT:
        number = sum(each.action == HIT for each in hand.moves[: hand.moves.index(move) + 1])
        card = hand.record()["player"][1 + number]
        found.append(message("event.drawn", card=card, counts=int(move.after[0]["sum"])))
    return found


def result(hand: Hand) -> list[Message]:
    """Both sides' cards, and who has won."""
    state, record = hand.state[0], hand.record()
    return [
        message("result.cards", cards=" ".join(record["player"]), counts=int(state["sum"])),
        message("result.dealer", cards=" ".join(record["dealer"]), counts=int(state["dealer_sum"])),
        message(f"result.{outcome(hand)}"),
    ]
