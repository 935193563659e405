"""View of any game: its position as rows of text, the legal actions as a list."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from busso.cards.hand import Hand, Move
from busso.cards.presentation import Row, presentation_of
from busso.play.language import Language, Message, message

LETTERS: dict[int, str] = {}  # that choose actions, beside their digits


@dataclass(frozen=True)
class GenericView:
    """View of a seat; `rows` are its knowledge by the game's own presentation or the generic one."""

    rows: tuple[Row, ...]
    legal: tuple[str, ...]


def view(hand: Hand, seat: int) -> GenericView:
    """Return the view of the seat."""
    rows = tuple(presentation_of(hand.game).rows(hand, seat))
    return GenericView(rows, legal_texts(hand) if hand.turn == seat else ())


def legal_texts(hand: Hand) -> tuple[str, ...]:
    """Return the names of the legal actions."""
    return tuple(map(hand.game.action_text, hand.legal))


def page(language: Language, game: str, seen: GenericView, details: bool) -> Iterator[str]:
    """Yield the view in lines."""
    for row in seen.rows:
        yield f"{row.label}: {row.text}"
    yield from legal_line(language, game, seen.legal)


def legal_line(language: Language, game: str, legal: tuple[str, ...], between: str = ", ") -> Iterator[str]:
    """Yield the legal actions as a person would type them, if there are any."""
    if legal:
        yield language.say("page.legal", actions=between.join(language.action(game, text) for text in legal))


def events(hand: Hand, move: Move) -> list[Message]:
    """Return the seat's action as an event."""
    return [message("event.action", seat=move.seat, action=hand.game.action_text(move.action))]


def result(hand: Hand) -> list[Message]:
    """Return the result of each occupied seat."""
    returns = hand.returns()
    return [
        message("result.seat", seat=seat, value=f"{returns[seat]:+g}", unit=hand.game.unit)
        for seat in np.flatnonzero(hand.game.occupied(hand.state)[0]).tolist()
    ]


def dealt_hands(hand: Hand) -> list[Message]:
    """Return nothing: what to show of a deal depends on the game."""
    return []


open_hands = dealt_hands


def why_not(hand: Hand, action: int) -> Message:
    """Return the reason: the action is not legal."""
    text = hand.game.action_text(action) if 0 <= action < hand.game.actions else str(action)
    return message("reason.not_legal", action=text)
