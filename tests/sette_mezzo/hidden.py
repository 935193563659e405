"""Hidden cards of Sette e mezzo: the deck."""

import numpy as np

from busso.cards.game import States


def reshuffle_hidden(states: States, seat: int, random: np.random.Generator) -> None:
    """Shuffle the deck in place."""
    states["random"] = random.integers(0, 2**64, dtype=np.uint64)
