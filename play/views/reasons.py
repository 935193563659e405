"""Why an action is not legal, in the words of the game."""

from __future__ import annotations

from cards.hand import Hand
from play.language import Message, message


def why_not(hand: Hand, action: int) -> Message | None:
    """The reason that the seat to move may not do this; None if it may."""
    if hand.over:
        return message("reason.over")
    if action in hand.legal:
        return None
    reason = {"tressette": _tressette, "spike": _spike}.get(hand.game.name, _any_game)
    return reason(hand, action)


def _any_game(hand: Hand, action: int) -> Message:
    text = hand.game.action_text(action) if 0 <= action < hand.game.actions else str(action)
    return message("reason.not_legal", action=text)


def _tressette(hand: Hand, action: int) -> Message:
    from tressette.cards import CARDS, RANKS, SUIT_NAMES, card_text

    state = hand.state[0]
    if not 0 <= action < CARDS:
        return _any_game(hand, action)
    if not int(state["hands"][state["turn"]]) >> action & 1:
        return message("reason.not_held", card=card_text(action))
    led = int(state["trick"][state["leader"]])
    return message("reason.follow", suit=SUIT_NAMES[led // RANKS], card=card_text(action))


def _spike(hand: Hand, action: int) -> Message:
    from spike.cards import RAISE
    from spike.state import BET, BUYING

    state = hand.state[0]
    phase = int(state["phase"])
    if phase == BET and action == RAISE:
        return message("reason.raise_cap", most=int(state["raise_cap"]))
    return message({BET: "reason.betting", BUYING: "reason.buying"}.get(phase, "reason.exchange"))
