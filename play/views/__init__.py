"""What a person may see of each game, as plain data, and what happened, as messages."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from cards.hand import Hand, Move
from play.language import Message

# Games with a view of their own: modules here with `view(hand, seat)`, `events(game, move)` and `result(hand)`.
_OWN = ("tressette", "spike", "blackjack", "sette_mezzo")


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"play.views.{name if name in _OWN else 'generic'}")


def view(hand: Hand, seat: int) -> Any:
    """What the person in that seat may see of a hand: a frozen dataclass of texts and numbers."""
    return _module(hand.game.name).view(hand, seat)


def events(hand: Hand, move: Move) -> list[Message]:
    """What everybody at the table saw happen with a move of this hand."""
    found: list[Message] = _module(hand.game.name).events(hand, move)
    return found


def result(hand: Hand) -> list[Message]:
    """What an ended hand came to, with what is laid open at its end."""
    found: list[Message] = _module(hand.game.name).result(hand)
    return found
