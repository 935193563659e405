"""Made-up batches of deals, for tests of their evaluation."""

import numpy as np

from busso.cards.duplicate import Duel
from busso.evaluate.tournament.batches import Batch, Played, Timing


def played(batch: Batch, wins: np.ndarray, seconds: float = 1.0) -> Played:
    """Return a batch with these shares of games won; the results follow from them."""
    return Played(batch, Duel(wins, 11 * wins, 11 - 11 * wins), (Timing(1, 1, 2, 3), Timing(2, 1, 4, 5)), seconds)


def shares(
    random: np.random.Generator, deals: int, chances: tuple[float, float, float] = (0.3, 0.4, 0.3)
) -> np.ndarray:
    """Draw the shares won of `deals` deals: none, half or all, with these probabilities."""
    return random.choice([0.0, 0.5, 1.0], deals, p=chances)
