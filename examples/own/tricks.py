"""Tressette with a custom reward: tricks instead of points."""

from busso.kit import njit, variant
from busso.tressette import GAME as TRESSETTE
from busso.tressette.rules import SEATS


@njit
def by_tricks(before, card, after, totals):
    """Give 0.1 to each seat of the team that takes a trick, and -0.1 to the others."""
    if before.plays % SEATS == SEATS - 1:  # this card ends the trick
        for seat in range(SEATS):
            totals[seat] += 0.1 if (seat ^ after.last_taker) & 1 == 0 else -0.1


GAME = variant(TRESSETTE, rewards={"tricks": by_tricks})
