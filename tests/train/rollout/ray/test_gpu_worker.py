"""A Ray worker with a share of a GPU, in this process."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from busso.train.rollout.ray import actors
from busso.train.rollout.request import RolloutRequest
from busso.train.rollout.worker import RolloutWorker
from tests.train.runs import settings


@pytest.mark.gpu
def test_a_worker_with_a_share_of_a_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its network is on the GPU; if values are far apart, it plays as on a CPU."""
    rules = settings(tmp_path, "rollout=ray", "rollout.gpus_per_worker=0.1")
    monkeypatch.setattr(actors.ray, "get", lambda reference: reference)
    here, actor = RolloutWorker(rules, torch.device("cpu")), actors.WorkerActor(pickle.dumps(rules))
    # The values are 0, 1, 2, ... by action, for every observation.
    weights = {name: torch.zeros(each.shape) for name, each in here.network.state_dict().items()}  # as published
    weights["head.bias"] = torch.arange(len(weights["head.bias"])).float()
    here.load(3, weights)
    assert actor._worker.network.head.weight.device.type == "cuda"
    arrays = {name: each.numpy() for name, each in weights.items()}
    request = RolloutRequest(0, 64, 0.3)
    rollout, columns = actor.play(request, 3, [arrays])
    assert rollout.weights_version == 3 and rollout.transitions is None
    for expected, found in zip(here.play(request).transitions, columns, strict=True):
        assert isinstance(found, np.ndarray) and np.array_equal(found, expected)
