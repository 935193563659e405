"""Views of each game as data and text, and its events as messages; `generic` supplies what a game's module lacks."""

from typing import Any

from busso.cards.hand import Hand, Move
from busso.cards.presentation import own_module
from busso.play.language import Language, Message
from busso.play.views import generic


def _of(game: str, what: str) -> Any:
    return getattr(own_module(__name__, game), what, None) or getattr(generic, what)


def view(hand: Hand, seat: int) -> Any:
    """Return the view of a person in a seat: a frozen dataclass of texts and numbers."""
    return _of(hand.game.shown_as, "view")(hand, seat)


def page(language: Language, game: str, seen: Any, details: bool) -> list[str]:
    """Return a view in lines; with `details` also past signals and shown cards."""
    return list(_of(game, "page")(language, game, seen, details))


def position(language: Language, hand: Hand, number: int, seat: int) -> list[str]:
    """Return the lines of the position before move `number`, from 1, of a finished hand, with its hidden cards."""
    own = getattr(own_module(__name__, hand.game.shown_as), "position", None)
    if own is not None:
        return own(language, hand, number, seat)
    seen = view(hand.until(number - 1), seat)
    return [*page(language, hand.game.shown_as, seen, details=False), "", *map(language.render, result(hand))]


def events(hand: Hand, move: Move) -> list[Message]:
    """Return the events of a move that everybody at the table saw."""
    return _of(hand.game.shown_as, "events")(hand, move)


def stays_longer(hand: Hand, move: Move) -> bool:
    """Return whether the outcome of a move is worth a longer look: a trick, or dice."""
    return any(told.key == "event.trick" or told.key.startswith("event.dice") for told in events(hand, move))


def letters(game: str) -> dict[int, str]:
    """Return the letters that choose actions, beside their digits."""
    return dict(_of(game, "LETTERS"))


def result(hand: Hand) -> list[Message]:
    """Return the result of an ended hand, with the cards laid open at its end."""
    return _of(hand.game.shown_as, "result")(hand)


def dealt_hands(hand: Hand) -> list[Message]:
    """Return the hands as dealt, for games that the deal determines."""
    return _of(hand.game.shown_as, "dealt_hands")(hand)


def open_hands(hand: Hand) -> list[Message]:
    """Return the hidden cards, a message for each seat, for spectators; empty if nothing is hidden."""
    return _of(hand.game.shown_as, "open_hands")(hand)


def why_not(hand: Hand, action: int) -> Message | None:
    """Return why the seat to move may not take this action, in the game's words; None if it may."""
    if hand.over:
        return Message("reason.over")
    if action in hand.legal:
        return None
    known = 0 <= action < hand.game.actions
    return (_of(hand.game.shown_as, "why_not") if known else generic.why_not)(hand, action)
