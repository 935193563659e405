"""A position of a hand that is over, in lines: what the seat saw when it decided, and what it did not see."""

from __future__ import annotations

from cards.hand import Hand
from play.language import Language
from play.plain.pages import page
from play.views import result, view


def position(language: Language, hand: Hand, number: int, seat: int) -> list[str]:
    """What the seat saw before move `number`, from 1; in Tressette with all hands as they were dealt."""
    name, seen = hand.game.name, view(moment(hand, number - 1), seat)
    lines = page(language, name, seen, details=False)
    if name != "tressette":
        return [*lines, "", *map(language.render, result(hand))]
    known = page(language, name, seen, details=True)[: -len(lines)]
    return [*lines[:2], *_laid_open(language, hand, number - 1), *known]  # without the own hand: it is among them


def moment(hand: Hand, moves: int) -> Hand:
    """The hand as it was after so many moves."""
    then = Hand(hand.game, hand.seeds, hand.start)
    then.moves = list(hand.moves)
    then.back_to(moves)
    return then


def _laid_open(language: Language, hand: Hand, moves: int) -> list[str]:
    """All hands as they were dealt, with what had been played in brackets."""
    from play.views.tressette import dealt

    gone = {hand.game.action_text(move.action) for move in hand.moves[:moves]}
    lines = [language.say("review_screen.open")]
    for seat, suits in enumerate(dealt(hand)):
        cards = "  ".join(" ".join(f"({card})" if card in gone else card for card in suit) for suit in suits if suit)
        lines.append(f"{seat}  {cards}")
    return lines
