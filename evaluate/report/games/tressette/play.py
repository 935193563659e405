"""Cards that an agent plays in Tressette, by trick."""

import numpy as np
from numpy.typing import NDArray

from busso.evaluate.report.content import Block, Figure, TextTable
from busso.evaluate.report.sections.choices import stacked
from busso.evaluate.report.sections.observing import ObservedGames
from busso.tressette.cards import ACE, RANKS, THREE, TWO
from busso.tressette.rules import SEATS, TRICKS

_KINDS = ("3", "2", "ace", "king, horse or jack", "4 to 7")


def blocks(watched: ObservedGames) -> list[Block]:
    """Return the table of legal cards and the figure of played cards, by trick."""
    return [_legal_by_trick(watched), _played_by_trick(watched)]


def _legal_by_trick(watched: ObservedGames) -> TextTable:
    trick = watched.states["plays"].astype(np.int64) // SEATS
    leads = watched.states["plays"] % SEATS == 0
    rows = []
    for number in range(TRICKS):
        here = trick == number
        followed = watched.choices[here & ~leads]
        highest = _is_highest(watched, np.flatnonzero(here & leads))
        rows.append(
            [
                str(number + 1),
                f"{watched.choices[here & leads].mean():.1f}" if (here & leads).any() else "",
                f"{followed.mean():.1f}" if followed.size else "",
                f"{(followed == 1).mean():.0%}" if followed.size else "",
                f"{highest.mean():.0%}" if highest.size else "",
            ]
        )
    columns = (
        "trick",
        "legal cards, leading",
        "following",
        "forced, following",
        "leads the highest card left of a suit",
    )
    return TextTable(columns, rows, "Means over the decisions of each trick.", left=())


def _is_highest(watched: ObservedGames, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether no other seat holds a higher card of the suit that is led."""
    cards = watched.action[rows]
    others = np.bitwise_or.reduce(watched.states["hands"][rows], axis=1)
    others &= ~watched.states["hands"][rows, watched.seat[rows]]
    above = (others >> (cards.astype(np.uint64) + np.uint64(1))) & (
        (np.uint64(1) << (RANKS - 1 - cards % RANKS).astype(np.uint64)) - np.uint64(1)
    )
    none: NDArray[np.bool_] = above == 0
    return none


def kind_of(cards: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the kind of each card as an index of `_KINDS`."""
    strength = cards % RANKS
    return np.select([strength == THREE, strength == TWO, strength == ACE, strength >= 4], [0, 1, 2, 3], 4)


def _played_by_trick(watched: ObservedGames) -> Figure:
    shares = np.zeros((2 * TRICKS, len(_KINDS)))
    plays = watched.states["plays"].astype(np.int64)
    row = 2 * (plays // SEATS) + (plays % SEATS != 0)
    np.add.at(shares, (row, kind_of(watched.action)), 1)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1)
    names = [f"trick {k + 1}" for k in range(TRICKS)]
    panels = {"led": (names, shares[0::2]), "followed with": (names, shares[1::2])}
    svg = stacked("cards-by-trick", panels, _KINDS)
    return Figure(svg, "Kinds of cards led and followed with in each trick.", "Cards played, by trick.")
