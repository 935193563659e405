"""Hands of Corellian Spike given by their cards."""

from typing import Any

from busso.spike.cards import VALUES

PLAIN_DICE = [[1, 2], [3, 4], [5, 6]]
QUIET = {2: [1, 1] + 3 * [4, 4, 1, 1], 3: [1] * 3 + 3 * [4, 4, 4, 1, 1, 1]}  # everybody matches, nobody buys


def deck(*front: int) -> list[int]:
    """Return all 62 values, beginning with `front`."""
    rest = VALUES.tolist()
    for value in front:
        rest.remove(value)
    return [*front, *rest]


def hand(*front: int, players: int = 2, **changes: Any) -> dict[str, Any]:
    """Return a record in which everybody matches and nobody buys, except for `changes`."""
    record = {
        "game": "spike",
        "players": players,
        "credits": [50] * players,
        "deck": deck(*front),
        "dice": PLAIN_DICE,
        "tie_break": 0,
        "actions": QUIET.get(players, []),
    }
    return record | changes


def dealt(*cards: tuple[int, int, int]) -> list[int]:
    """Return the front of a deck that deals each seat its (first hand card, second, spike card)."""
    return [cards[seat][place] for place in range(3) for seat in range(len(cards))]
