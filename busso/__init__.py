"""Library interface of busso: stable names with typed arguments and results.

Games: `load_game`, `deal`, `look`, `step`. Players: `load_player`, `choose`, `duel`, `tournament`, `solve`. Runs:
`train_agent`, `load_run`, `export`. Errors that a caller can correct raise `BussoError`, a ValueError of one line.
docs/howto/library.md explains them.

Each name is imported at its first use, so that games wait for neither PyTorch nor Ray.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from busso.version import __version__

if not (_missing := Path(__file__).parent / "command").is_dir():
    _hint = "clone with git; in a folder unpacked from a zip, pip install PATH makes the links"
    raise ImportError(f"{_missing}: missing link to ../command; {_hint}", name="busso.command")

if TYPE_CHECKING:
    from busso.base.errors import InputError as BussoError
    from busso.cards.duplicate import Duel as Duel
    from busso.cards.game import Game as Game
    from busso.cards.play import Player as Player
    from busso.games import View as View
    from busso.games import deal as deal
    from busso.games import load_game as load_game
    from busso.games import look as look
    from busso.games import step as step
    from busso.players import Tournament as Tournament
    from busso.players import choose as choose
    from busso.players import duel as duel
    from busso.players import load_player as load_player
    from busso.players import solve as solve
    from busso.players import tournament as tournament
    from busso.runs import export as export
    from busso.runs import load_run as load_run
    from busso.runs import train_agent as train_agent
    from busso.train.run.read import Run as Run

_MODULES = {
    **dict.fromkeys(("View", "deal", "load_game", "look", "step"), "busso.games"),
    **dict.fromkeys(("Tournament", "choose", "duel", "load_player", "solve", "tournament"), "busso.players"),
    **dict.fromkeys(("export", "load_run", "train_agent"), "busso.runs"),
    "Run": "busso.train.run.read",
    "Duel": "busso.cards.duplicate",
    "Game": "busso.cards.game",
    "Player": "busso.cards.play",
    "BussoError": "busso.base.errors",
}
_ELSEWHERE = {"BussoError": "InputError"}  # names that differ in their modules

__all__ = [
    "BussoError",
    "Duel",
    "Game",
    "Player",
    "Run",
    "Tournament",
    "View",
    "__version__",
    "choose",
    "deal",
    "duel",
    "export",
    "load_game",
    "load_player",
    "load_run",
    "look",
    "solve",
    "step",
    "tournament",
    "train_agent",
]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"busso has no {name!r}; it has {', '.join(__all__)}")
    found = getattr(import_module(_MODULES[name]), _ELSEWHERE.get(name, name))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
