"""Seating in evaluations of a learning network."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from busso.cards.duplicate import Duel
from busso.cards.play import Player
from busso.cards.players import RandomPlayer
from busso.train.network.build import build_network
from busso.train.rollout import worker
from tests.train.runs import settings

CPU = torch.device("cpu")


def test_what_is_won_is_won_by_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A duel reports its first player's wins: here any player except `random` wins everything."""

    def duel(game: Any, first: Player, second: Player, seeds: np.ndarray, seating: str) -> Duel:
        assert isinstance(first, RandomPlayer) != isinstance(second, RandomPlayer)
        won = np.full(seeds.size, float(isinstance(second, RandomPlayer)))
        return Duel(won, won, 1 - won)

    monkeypatch.setattr(worker, "duel", duel)
    chosen = settings(tmp_path, "evaluation.opponents=[random]")
    weights = build_network(chosen.load_game(), chosen).state_dict()
    found = worker.Evaluator(chosen, CPU).duels(weights, "evaluation", 8)
    assert found["random"].wins.tolist() == [1.0] * 8
