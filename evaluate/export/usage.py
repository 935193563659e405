"""How an exported file is used, for its card: the code that loads it, and what the bits of an observation mean."""

from __future__ import annotations

import sys

from busso.cards.game import Game
from busso.evaluate.export.source import PACKED, ExportSource

_USE_ONNX = """
import numpy as np, onnxruntime

session = onnxruntime.InferenceSession("model.onnx")
observation = np.zeros((1, {width}), np.{kind})  # what a seat sees; the layout is below
legal = np.ones((1, {actions}), bool)  # the actions that it may take
{feed}values = session.run(["values"], inputs)[0]
action = np.where(legal, values, -np.inf).argmax(1)
"""


def usage(source: ExportSource, form: str) -> str:
    """How the file is loaded, in a few lines of Python."""
    game = source.game
    feed = 'inputs = {"observation": observation}\n'
    if len(source.networks) > 1:
        feed = f"network = np.zeros(1, np.int64)  # one of {len(source.networks)}, drawn for each game\n" + feed
        feed = feed.replace("observation}", 'observation, "network": network}')
    width, kind = (game.words, "uint64") if form == PACKED else (game.bits, "float32")
    return _USE_ONNX.format(width=width, kind=kind, actions=game.actions, feed=feed)


def layout_of(game: Game) -> str:
    """What each bit of an observation means, as the module of the game's `observe` says it."""
    observe = getattr(game.rules.observe, "py_func", game.rules.observe)
    return (sys.modules[observe.__module__].__doc__ or "").strip()
