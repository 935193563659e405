"""Strength of the learning network, measured on duplicate deals."""

import torch

from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import ALTERNATE, ONE_AGAINST_MANY, Duel, duel
from busso.cards.play import Stop, StoppablePlayer, never, stoppable
from busso.train.network.build import inference_network
from busso.train.network.q_network import NetworkPlayer
from busso.train.players.load import player_from_text
from busso.train.rollout.request import Weights
from busso.train.settings.dqn import TrainSettings


def evaluation_seating(settings: TrainSettings) -> str:
    """Return the seating of the network and an opponent in evaluations; see `busso.cards.duplicate.seatings`.

    As in training, a network that learns against one player sits alone, with that player in all other seats.
    """
    one = settings.opponents.only is not None and len(settings.load_game().teams) > 2
    return ONE_AGAINST_MANY if one else ALTERNATE


class Evaluator:
    """Evaluation of the network on duplicate deals against players that do not learn."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._settings = settings
        self._game = settings.load_game()
        self._network = inference_network(self._game, settings, device)
        key, opponents = "evaluation.opponents", settings.evaluation.opponents
        self._opponents = {name: player_from_text(self._game, name, device, key) for name in opponents}

    def duels(self, weights: Weights, stream_name: str, deals: int, stop: Stop = never) -> dict[str, Duel]:
        """Play each opponent on deals of the seed stream `stream_name`. Raises StoppedError soon after `stop()`."""
        self._network.load_state_dict(weights)
        player = StoppablePlayer(NetworkPlayer(self._network), stop)
        seeds = stream(self._settings.seed, stream_name, 0, deals)
        seating = evaluation_seating(self._settings)
        others = {name: stoppable(self._game, name, other, stop) for name, other in self._opponents.items()}
        return {name: duel(self._game, player, other, seeds, seating) for name, other in others.items()}
