"""Corellian Spike cards by rising value (two zeros, three each of -10 to -1 and 1 to 10), and the action names."""

import numpy as np

CARDS = 62
MIN_VALUE, MAX_VALUE = -10, 10
FACES = MAX_VALUE - MIN_VALUE + 1


def _values() -> list[int]:
    return [value for value in range(MIN_VALUE, MAX_VALUE + 1) for _ in range(copies(value))]


def copies(value: int) -> int:
    """Return the number of cards of a value; 0 for an unknown value."""
    if not MIN_VALUE <= value <= MAX_VALUE:
        return 0
    return 2 if value == 0 else 3


VALUES = np.array(_values(), np.int8)
NO_CARD = np.uint8(255)

RAISE, MATCH, FOLD, BUY, NO_BUY, DISCARD, SWAP_SPIKE, SWAP_LOWER, SWAP_HIGHER = range(9)
ACTIONS = 9
ACTION_TEXT = (
    "raise",
    "match",
    "fold",
    "buy",
    "do not buy",
    "discard",
    "swap with the spike card",
    "swap with the lower hand card",
    "swap with the higher hand card",
)


def action_text(action: int) -> str:
    """Return the name of an action: `0` -> `raise`."""
    return ACTION_TEXT[action]
