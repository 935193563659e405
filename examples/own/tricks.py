"""Tressette with a reward of its own: tricks, not points."""

from busso.kit import njit, variant
from busso.tressette import GAME as TRESSETTE
from busso.tressette.rules import SEATS


@njit
def by_tricks(before, card, after, totals):
    """The team that takes a trick earns 0.1, the other team loses 0.1."""
    if before.plays % SEATS == SEATS - 1:  # this card ends the trick
        for seat in range(SEATS):
            totals[seat] += 0.1 if (seat ^ after.last_taker) & 1 == 0 else -0.1


GAME = variant(TRESSETTE, rewards={"tricks": by_tricks})
