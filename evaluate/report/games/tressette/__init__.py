"""Parts of a report for Tressette: cards by trick, and the last tricks against the exact solver."""

from __future__ import annotations

from busso.evaluate.report.content import Section
from busso.evaluate.report.games.tressette.endgame import section
from busso.evaluate.report.games.tressette.play import blocks
from busso.evaluate.report.sections.observing import Watched

__all__ = ["blocks", "sections"]


def sections(watched: Watched, tricks: int, seed: int) -> list[Section]:
    """The last `tricks`, solved; nothing where no card of them mattered."""
    found = section(watched, tricks, seed)
    return [] if found is None else [found]
