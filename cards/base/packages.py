"""Location of a game: busso's own are packages in busso, others are files that a person named, or installed."""

from __future__ import annotations

import sys
from functools import cache
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


def installed_games() -> frozenset[str]:
    """The games of installed packages; a package that lies in the working folder is not installed."""
    places = (place for place in sys.path if Path(place or ".").resolve() != Path.cwd())
    return _installed_in(tuple((place, _changed(place)) for place in places))


def _changed(place: str) -> int:
    try:
        return Path(place or ".").stat().st_mtime_ns
    except OSError:
        return 0


@cache  # every reader of settings asks, and a look at all packages takes 10 ms
def _installed_in(places: tuple[tuple[str, int], ...]) -> frozenset[str]:
    from importlib import metadata  # with forty modules, for which --help does not wait

    found = (
        point for each in metadata.distributions(path=[place for place, _ in places]) for point in each.entry_points
    )
    return frozenset(point.name for point in found if point.group == ENTRY_POINTS)
