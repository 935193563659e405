"""Ray workers with a share of a GPU, in this process."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.chips import emulated_chip
from tests.train.dqn.test_device_player import chosen, exact
from train.dqn.players.device_player import DevicePlayer
from train.dqn.rollout.ray import actors
from train.dqn.rollout.request import RolloutRequest
from train.dqn.rollout.worker import RolloutWorker


@pytest.mark.gpu
def test_a_worker_with_a_share_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its player is that of threads, of the league too; what comes back are the arrays of a worker on a CPU."""
    mix = "opponents.phases=[{until: null, mix: {network: 0.5, league: 0.5}}]"
    rules = chosen(tmp_path, "tressette", "rollout=ray", "rollout.gpus_per_worker=0.1", mix)
    monkeypatch.setattr(actors.ray, "get", lambda reference: reference)
    with emulated_chip("float32_pytorch"):
        here, actor = exact(RolloutWorker(rules, torch.device("cpu"))), actors.WorkerActor(pickle.dumps(rules))
        assert all(isinstance(player, DevicePlayer) for player in actor._worker._players)
        weights = here.network.state_dict()
        arrays, past = ({name: sign * each.numpy() for name, each in weights.items()} for sign in (1, -1))
        member = {name: -each for name, each in weights.items()}
        for first, number in ((0, None), (64, 1)):
            request = RolloutRequest(first, 64, 0.3, member=number)
            rollout, columns = actor.play(request, 3, [arrays], [past] if number else [])
            assert rollout.weights_version == 3 and rollout.transitions is None
            for expected, found in zip(here.play(request, member).transitions, columns, strict=True):
                assert isinstance(found, np.ndarray) and np.array_equal(found, expected)
        assert DevicePlayer.captures
