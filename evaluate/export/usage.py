"""How an exported file is used, for its card: the code that loads it, and what the bits of an observation mean."""

from __future__ import annotations

import sys
from typing import Any

from busso.cards.game import Game
from busso.evaluate.export.source import PACKED, SAFETENSORS, ExportSource

_USE_ONNX = """
import numpy as np, onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
observation = np.zeros((1, {width}), np.{kind})  # what a seat sees; the layout is below
legal = np.ones((1, {actions}), bool)  # the actions that it may take
{feed}values = session.run(["values"], inputs)[0]
action = np.where(legal, values, -np.inf).argmax(1)
"""
_USE_SAFETENSORS = """
import busso

game = busso.load_game("{game}"{options})
player = busso.load_player(game, "FOLDER")  # of this card
print(busso.duel(game, player, "random", deals=1024).win_rate)
"""


def usage(source: ExportSource, kind_of_file: str, form: str) -> str:
    """How the file is loaded, in a few lines of Python."""
    game = source.game
    if kind_of_file == SAFETENSORS:
        options = "".join(f", {key}={value!r}" for key, value in _differing(source).items())
        return _USE_SAFETENSORS.format(game=game.name, options=options)
    feed = 'inputs = {"observation": observation}\n'
    if len(source.networks) > 1:
        feed = f"network = np.zeros(1, np.int64)  # one of {len(source.networks)}, drawn for each game\n" + feed
        feed = feed.replace("observation}", 'observation, "network": network}')
    width, kind = (game.words, "uint64") if form == PACKED else (game.bits, "float32")
    return _USE_ONNX.format(width=width, kind=kind, actions=game.actions, feed=feed)


def _differing(source: ExportSource) -> dict[str, Any]:
    """The options of the game that are not its defaults."""
    options = source.game.options
    plain = type(options)()
    return {key: value for key, value in vars(options).items() if value != getattr(plain, key)}


def layout_of(game: Game) -> str:
    """What each bit of an observation means, as the module of the game's `observe` says it."""
    observe = getattr(game.rules.observe, "py_func", game.rules.observe)
    return (sys.modules[observe.__module__].__doc__ or "").strip()
