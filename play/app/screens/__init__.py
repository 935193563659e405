"""The screen of each game, by its name; a game without one is played as the line mode says it."""

from __future__ import annotations

from busso.cards.game import Game
from busso.cards.presentation import own_module
from busso.play.app.table.table import TableScreen


def screen_for(game: Game) -> type[TableScreen]:
    """The screen on which that game is played, with its `BOARD`: `GameScreen` of the module of that name here."""
    module = own_module(__name__, game.shown_as)
    found: type[TableScreen] = TableScreen if module is None else module.GameScreen
    return found
