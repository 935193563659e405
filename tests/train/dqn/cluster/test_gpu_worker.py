"""A Ray worker with a share of a GPU, in this process."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from busso.train.dqn.rollout.ray import actors
from busso.train.dqn.rollout.request import RolloutRequest
from busso.train.dqn.rollout.worker import RolloutWorker
from tests.train.runs import settings

MIX = "opponents.phases=[{until: null, mix: {network: 0.5, league: 0.5}}]"


@pytest.mark.gpu
def test_a_worker_with_a_share_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its networks are on the GPU, that of the league too; with values far apart it plays as one on a CPU."""
    rules = settings(tmp_path, "rollout=ray", "rollout.gpus_per_worker=0.1", MIX)
    monkeypatch.setattr(actors.ray, "get", lambda reference: reference)
    here, actor = RolloutWorker(rules, torch.device("cpu")), actors.WorkerActor(pickle.dumps(rules))
    # The same value for every observation, 0, 1, 2 ... for the actions.
    weights = {name: torch.zeros_like(each) for name, each in here.network.state_dict().items()}
    weights["head.bias"] = torch.arange(len(weights["head.bias"])).float()
    here.load(3, weights)
    assert actor._worker.network.head.weight.device.type == "cuda"
    member = {name: -each for name, each in weights.items()}
    arrays, past = ({name: each.numpy() for name, each in all_of.items()} for all_of in (weights, member))
    for first, number in ((0, None), (64, 1)):
        request = RolloutRequest(first, 64, 0.3, member=number)
        rollout, columns = actor.play(request, 3, [arrays], [past] if number else [])
        assert rollout.weights_version == 3 and rollout.transitions is None
        for expected, found in zip(here.play(request, member).transitions, columns, strict=True):
            assert isinstance(found, np.ndarray) and np.array_equal(found, expected)
