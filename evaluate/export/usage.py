"""Usage of an exported file, for its card: the code that loads it, and the meaning of the observation's bits."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

from busso.cards.base.own_files import typed_game
from busso.cards.game import Game
from busso.cards.own.layout import table_of
from busso.evaluate.export.source import PACKED, ExportSource

_USE_ONNX = """
import numpy as np, onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
observation = np.zeros((1, {width}), np.{kind})  # what a seat sees; the layout is below
legal = np.ones((1, {actions}), bool)  # the actions that it may take
values = session.run(["values"], {{"observation": observation}})[0]
action = np.where(legal, values, -np.inf).argmax(1)
"""
_USE_BUSSO = """
import busso

game = busso.load_game({game})
player = busso.load_player(game, "./"{network})  # the folder of this file
print(busso.duel(game, player, "random", deals=64).win_rate)
"""


def usage(source: ExportSource, form: str) -> str:
    """Return the lines of Python that load the file."""
    game = source.game
    width, kind = (game.words, "uint64") if form == PACKED else (game.bits, "float32")
    return _USE_ONNX.format(width=width, kind=kind, actions=game.actions)


def usage_in_busso(source: ExportSource) -> str:
    """Return the lines of Python that load a file for busso."""
    game, settings = source.game, source.found.settings
    defaults = asdict(type(game.options)())
    other = {key: value for key, value in asdict(game.options).items() if value != defaults[key]}
    named = [_python(typed_game(settings.game_name)), *(f"{key}={_python(value)}" for key, value in other.items())]
    module = settings.network.module
    network = f", network={_python(module.partition(':')[0])}" if module else ""
    return _USE_BUSSO.format(game=", ".join(named), network=network)


def _python(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


def layout_of(game: Game) -> str:
    """Return the meaning of each bit of an observation: the table of the layout, if the game has one.

    Otherwise it is the docstring of the module of the game's `observe`.
    """
    if game.layout is not None:
        return table_of(game.layout, [game.action_text(action) for action in range(game.actions)])
    observe = getattr(game.rules.observe, "py_func", game.rules.observe)
    return (sys.modules[observe.__module__].__doc__ or "").strip()
