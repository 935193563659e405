"""Location of games: packages of busso, files that a user named (`busso.base.own_files`), or installed packages."""

import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from busso.base import own_files
from busso.base.files import code_digest
from busso.base.own_files import OwnFile

ENTRY_POINTS = "busso.games"  # the entry-point group for game packages: `NAME = "NAME:GAME"`
REWARD_SCALE = "reward_scale"  # key of the settings of a game in a file, beside its options
_BUSSO = Path(__file__).parents[1]
_games: dict[str, str] = {}  # paths of named files by the name of the game in the file

Sent = tuple[tuple[OwnFile, ...], dict[str, str]]


def package_of(game: str) -> str:
    """Return the package or module of a game of this name, which may not exist."""
    if file := game_file(game):
        return f"{own_files.PREFIX}.{file.name}"
    return f"busso.{game}" if is_ours(game) else game


def source_digest(package: str) -> str:
    """Return the digest of the Python sources of a package or module, as they are on disk now."""
    spec = find_spec(package)
    assert spec is not None and spec.origin is not None
    return code_digest(Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin))


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


# ---------------------------------------------------------------------- games in files


def register_game(name: str, file: OwnFile) -> None:
    """Let files name this game, which the named file defines."""
    _games[name] = file.path


def game_file(name: str) -> OwnFile | None:
    """Return the named file that defines this game."""
    return next((file for file in own_files.trusted() if file.path == _games.get(name)), None)


def without_game() -> tuple[OwnFile, ...]:
    """Return the named files that define no game: they have players, networks or losses."""
    return tuple(file for file in own_files.trusted() if file.path not in _games.values())


def game_digest(name: str) -> str:
    """Return the digest of the file that defines this game; empty for a game that is not in a file."""
    return file.sha256 if (file := game_file(name)) else ""


def typed_game(name: str) -> str:
    """Return the name of a game as a person types it: `./war.py` for `war`."""
    return file.typed if (file := game_file(name)) else name


def sent() -> Sent:
    """Return all named files with their sources and games, for another process of the run."""
    return own_files.trusted(), dict(_games)


def receive(files: Sent) -> None:
    """Name the files and games that another process of the run has sent."""
    own_files.receive(files[0])
    _games.update(files[1])
