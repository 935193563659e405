"""Match of a network exported as ONNX against a rule player, with NumPy and onnxruntime but without PyTorch.

`busso export` writes the file; `python examples/play_onnx.py FOLDER/model.onnx greedy` plays it.
"""

import json
import sys

import numpy as np
import onnxruntime

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import duel
from busso.cards.players import named_player
from busso.command.settings.game import load_configured_game


class OnnxPlayer:
    """Player for busso.cards.play, without state between decisions."""

    def __init__(self, session, form):
        self.session, self.form = session, form

    def begin(self, seeds):
        """Do nothing at the start of a batch of games."""

    def act(self, decisions):
        """Return the legal action with the greatest value for each decision."""
        values = self.values(decisions.observation)
        legal = decisions.legal[:, None] >> np.arange(values.shape[1], dtype=np.uint64) & np.uint64(1)
        return np.where(legal, values, -np.inf).argmax(1).astype(np.uint8)

    def values(self, observation):
        """Return the value of every action for packed observations, `[batch, words]`."""
        if self.form["form"] == "bits":
            bits = np.unpackbits(observation.view(np.uint8), axis=1, count=self.form["bits"], bitorder="little")
            observation = bits.astype(np.float32)
        return self.session.run(["values"], {"observation": observation})[0]


path, opponent = sys.argv[1], (sys.argv[2:] or ["random"])[0]
session = onnxruntime.InferenceSession(path)
about = json.loads(session.get_modelmeta().custom_metadata_map["busso"])
game = load_configured_game({**about["game"]["options"], "name": about["game"]["name"]})
result = duel(
    game, OnnxPlayer(session, about["observation"]), named_player(game, opponent), stream(1, "example", 0, 512)
)
print(f"{game.name}: won {result.win_rate} of 1,024 games against {opponent}, {result.points} {game.unit} more a game")
