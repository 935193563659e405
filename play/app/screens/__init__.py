"""The screen of each game, by its name; a game without one is played as the line mode says it."""

from __future__ import annotations

import importlib
from importlib.util import find_spec

from cards.game import Game
from play.app.table.table import TableScreen


def screen_for(game: Game) -> type[TableScreen]:
    """The screen on which that game is played, with its `BOARD`: `GameScreen` of the module of that name here."""
    own = f"{__name__}.{game.name}"
    found: type[TableScreen] = importlib.import_module(own).GameScreen if find_spec(own) else TableScreen
    return found
