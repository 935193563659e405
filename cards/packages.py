"""Location of games: packages of busso, files that a user named, or installed packages."""

import sys
from functools import cache
from pathlib import Path

from busso.base import own_files

ENTRY_POINTS = "busso.games"  # the entry-point group for game packages: `NAME = "NAME:GAME"`
_BUSSO = Path(__file__).parents[1]


def package_of(game: str) -> str:
    """Return the package or module of a game of this name, which may not exist."""
    if file := own_files.game_file(game):
        return f"{own_files.PREFIX}.{file.name}"
    return f"busso.{game}" if is_ours(game) else game


def is_ours(game: str) -> bool:
    """Return whether busso has a game of that name."""
    return game.isidentifier() and (_BUSSO / game / "rules.py").is_file()


def installed_games() -> frozenset[str]:
    """Return the games of installed packages; a package in the working folder does not count."""
    places = (place for place in sys.path if Path(place or ".").resolve() != Path.cwd())
    return _installed_in(tuple((place, _changed(place)) for place in places))


def _changed(place: str) -> int:
    try:
        return Path(place or ".").stat().st_mtime_ns
    except OSError:
        return 0


@cache  # called by every reader of settings, and scanning all packages takes 10 ms
def _installed_in(places: tuple[tuple[str, int], ...]) -> frozenset[str]:
    from importlib import metadata  # imports forty modules, which --help does not need

    found = (
        point for each in metadata.distributions(path=[place for place, _ in places]) for point in each.entry_points
    )
    return frozenset(point.name for point in found if point.group == ENTRY_POINTS)
