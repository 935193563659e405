"""The screen of each game, by its name; a game without one gets the generic screen."""

from __future__ import annotations

import importlib

from cards.game import Game
from cards.presentation import own_module
from play.app.table.table import TableScreen


def screen_for(game: Game) -> type[TableScreen]:
    """The screen on which that game is played: `GameScreen` of the module here that is called as the game."""
    module = own_module(__name__, game.name) or importlib.import_module(f"{__name__}.generic")
    found: type[TableScreen] = module.GameScreen
    return found
