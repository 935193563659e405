"""Who sits where when a network that learns is evaluated."""

from pathlib import Path

import torch

from cards.duplicate import duel
from cards.play import named_player
from cards.splitmix import stream
from tests.train.runs import settings
from train.dqn.evaluator import Evaluator
from train.dqn.network import NetworkPlayer
from train.dqn.rollout import RolloutWorker

CPU = torch.device("cpu")


def test_what_is_won_is_won_by_the_network(tmp_path: Path) -> None:
    """An untrained network loses against `greedy`, just as it does in a duel."""
    chosen = settings(tmp_path, "evaluation.opponents=[greedy]")
    game, network = chosen.load_game(), RolloutWorker(chosen, CPU).network
    found = Evaluator(chosen, CPU).duels(network.state_dict(), "evaluation", 64)["greedy"]
    seeds = stream(chosen.seed, "evaluation", 0, 64)
    expected = duel(game, NetworkPlayer(network), named_player(game, "greedy"), seeds)
    assert (found.wins == expected.wins).all() and found.points == expected.points
    assert found.points.high < 0 and found.win_rate.high < 0.5
