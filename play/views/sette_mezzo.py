"""Sette e mezzo as the player sees it: all cards lie open, and the opponent draws after the player has stopped."""

from busso.play.language import message
from busso.play.views.small import SmallGame, page
from busso.sette_mezzo.rules import HIT, STICK, points_text

__all__ = ["LETTERS", "events", "page", "result", "view"]

LETTERS = {STICK: "s", HIT: "h"}  # as in `generic`
_GAME = SmallGame(
    side="opponent",
    counts=("score", "opponent_score"),
    text=points_text,
    dealt=1,
    hit=HIT,
    rule=lambda state: message("rule.limit", limit=f"{state['limit']:g}"),
)
view, events, result = _GAME.view, _GAME.events, _GAME.result
