"""The screen of each game, by its name; other games are shown as in the line mode."""

from busso.cards.game import Game
from busso.cards.presentation import own_module
from busso.play.app.table import TableScreen


def screen_for(game: Game) -> type[TableScreen]:
    """Return the screen of a game, with its `BOARD`: `GameScreen` of its module here, if there is one."""
    module = own_module(__name__, game.shown_as)
    return TableScreen if module is None else module.GameScreen
