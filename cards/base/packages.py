"""Where a game is: busso's own are packages in busso, others are files that a person named, or installed."""

from __future__ import annotations

import sys
from pathlib import Path

from busso.cards.base import own_files

ENTRY_POINTS = "busso.games"  # the group in which a package says that it is a game: `NAME = "NAME:GAME"`
_BUSSO = Path(__file__).parents[2]


def package_of(game: str) -> str:
    """The package or module of the game of that name, whether there is one or not."""
    if file := own_files.game_file(game):
        return f"{own_files.PREFIX}.{file.name}"
    return f"busso.{game}" if is_ours(game) else game


def is_ours(game: str) -> bool:
    """Return whether busso has a game of that name."""
    return game.isidentifier() and (_BUSSO / game / "rules.py").is_file()


def installed_games() -> set[str]:
    """The games of installed packages; a package that lies in the working folder is not installed."""
    from importlib import metadata  # with forty modules, for which --help does not wait

    places = [place for place in sys.path if Path(place or ".").resolve() != Path.cwd()]
    found = (point for each in metadata.distributions(path=places) for point in each.entry_points)
    return {point.name for point in found if point.group == ENTRY_POINTS}
