"""Blackjack as the player sees it."""

from busso.blackjack.rules import HIT, STAND
from busso.cards.hand import Hand
from busso.play.language import Message, message
from busso.play.views.small import SmallGame, page

__all__ = ["LETTERS", "events", "open_hands", "page", "result", "view"]

LETTERS = {STAND: "s", HIT: "h"}  # as in `generic`
_GAME = SmallGame(
    side="dealer",
    counts=("sum", "dealer_sum"),
    text=str,
    dealt=2,
    hit=HIT,
    rule=lambda state: message("rule.soft_17_hit" if state["hits_soft_17"] else "rule.soft_17_stand"),
)
view, events, result = _GAME.view, _GAME.events, _GAME.result


def open_hands(hand: Hand) -> list[Message]:
    """Return the dealer's cards."""
    return [message("watch.hole", cards=" ".join(hand.record()["dealer"][: None if hand.over else 2]))]
