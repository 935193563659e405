"""A player without chance, so that the same games can be played in several ways."""

import numpy as np
from numpy.typing import NDArray

from cards.play import Actions, Decisions


class Lowest:
    """Plays the lowest of the legal actions."""

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """See `cards.play.Player`."""

    def act(self, decisions: Decisions) -> Actions:
        """See `cards.play.Player`."""
        return np.array([(int(mask) & -int(mask)).bit_length() - 1 for mask in decisions.legal], np.uint8)
