"""Parts of a report for Tressette: cards by trick, and the last tricks against the exact solver."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from busso.evaluate.report.content import Section
from busso.evaluate.report.games.tressette.endgame import section, solved
from busso.evaluate.report.games.tressette.play import blocks
from busso.evaluate.report.sections.observing import Watched
from busso.evaluate.report.sections.played import Remarks
from busso.tressette.cards import CARDS, card_text
from busso.tressette.rules import SEATS

__all__ = ["blocks", "remarks", "sections"]

_SOLVED = 6  # tricks left from which on the cards of a hand are solved


def sections(watched: Watched, tricks: int, seed: int) -> list[Section]:
    """The last `tricks`, solved; nothing where no card of them mattered."""
    found = section(watched, tricks, seed)
    return [] if found is None else [found]


def remarks(watched: Watched, rows: NDArray[np.int64]) -> Remarks:
    """The hands as dealt, what each card leads to, and the leads of tricks."""
    lead = " Solved: the points of its team with best play of all, all hands open, where that is quickly found."
    leads = np.flatnonzero(watched.states["plays"][rows] % SEATS == 0).tolist()
    return Remarks(lead + _dealt(watched), {"solved": _solved(watched, rows)}, leads, "Marked: the lead of each trick.")


def _dealt(watched: Watched) -> str:
    """The four hands before the first card."""
    state = watched.states[np.flatnonzero(watched.game == 0)[0]]
    held = [int(state["hands"][seat]) | int(state["played"][seat]) for seat in range(SEATS)]
    lines = [
        f"* seat {seat}: "
        + " ".join(f"`{card_text(card)}`" for card in reversed(range(CARDS)) if held[seat] >> card & 1)
        for seat in range(SEATS)
    ]
    return " Hands as dealt:\n\n" + "\n".join(lines) + "\n\nSeats 0 and 2 play against 1 and 3."


def _solved(watched: Watched, rows: NDArray[np.int64]) -> list[str]:
    """What the card leads to, and what the best would, in points of the whole hand; empty where that takes long."""
    late = watched.states["plays"][rows] >= CARDS - SEATS * _SOLVED
    values = solved(watched.states[rows[late]])
    chosen = values[np.arange(len(values)), watched.action[rows[late]]]
    pairs = zip(chosen, values.max(axis=1), strict=True)
    texts = (f"{own:.0f}" if own == best else f"{own:.0f}, best {best:.0f}" for own, best in pairs)
    return [next(texts) if known else "" for known in late]
