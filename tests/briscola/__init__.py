"""The rules of examples/own/briscola.py."""

from typing import Any

from busso.base.own_files import trust
from busso.cards.game import Game
from tests.own.examples import BRISCOLA

MODULE: Any = trust(BRISCOLA).module
GAME: Game = MODULE.GAME
CARD_TEXT: list[str] = MODULE.NAMES
