"""The network that travels with a game: where it lies, and what it is called as a player."""

from importlib.util import find_spec
from pathlib import Path

CHAMPION = "champion"
FILE = "network.safetensors"


def champion_folder(game: str) -> Path:
    """Where the package of a game has its champion, if it has one."""
    spec = find_spec(game)
    assert spec is not None and spec.submodule_search_locations, game
    return Path(spec.submodule_search_locations[0]) / CHAMPION


def champion_file(game: str) -> Path | None:
    """The champion of the game of this name; None for a game without one."""
    path = champion_folder(game) / FILE
    return path if path.is_file() else None
