"""Parts of a Tressette report: cards by trick, and the last tricks compared with the exact solver."""

from busso.evaluate.report.content import Section
from busso.evaluate.report.games.tressette.endgame import section
from busso.evaluate.report.games.tressette.play import blocks
from busso.evaluate.report.sections.observing import ObservedGames

__all__ = ["blocks", "sections"]


def sections(watched: ObservedGames, tricks: int, seed: int) -> list[Section]:
    """Return the section on the last `tricks`, solved; empty if no decision in them mattered."""
    found = section(watched, tricks, seed)
    return [] if found is None else [found]
