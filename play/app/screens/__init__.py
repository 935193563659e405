"""The screen of each game, by its name; a game without one gets the generic screen."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

from cards.game import Game
from play.app.table.table import TableScreen


def screen_for(game: Game) -> type[TableScreen]:
    """The screen on which that game is played: `GameScreen` of the module here that is called as the game."""
    own = f"{__name__}.{game.name}"
    module = importlib.import_module(own if find_spec(own) else f"{__name__}.generic")
    found: type[TableScreen] = module.GameScreen
    return found
