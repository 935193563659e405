"""Data of histograms, taken without changing the buffer or the network."""

import copy
from pathlib import Path

import numpy as np
import torch

from busso.train.evaluations import HISTOGRAM_ROWS, look
from busso.train.learner.learner import Learner
from busso.train.learner.replay_buffer import build_replay
from busso.train.network.build import build_network
from busso.train.rollout.request import RolloutRequest
from busso.train.rollout.worker import RolloutWorker
from tests.train.runs import equal, settings

CPU = torch.device("cpu")


def test_a_look_changes_nothing_and_sees_what_is_there(tmp_path: Path) -> None:
    chosen = settings(tmp_path, "learner.precision=float32")
    game, buffer = chosen.load_game(), build_replay(chosen.load_game(), chosen, CPU)
    learner = Learner(build_network(game, chosen), buffer, chosen.learner, chosen.target, CPU)
    assert look(learner, buffer) == ({}, {})
    played = RolloutWorker(chosen, CPU).play(RolloutRequest(0, 64, 1.0)).transitions
    buffer.add(played)
    learner.update()
    before = copy.deepcopy([learner.state_dict(), buffer.generator.get_state()])
    histograms, norms = look(learner, buffer)
    assert equal(before, [learner.state_dict(), buffer.generator.get_state()]) == []
    rows = histograms["actions/played"]
    assert 0.5 * HISTOGRAM_ROWS < len(rows) <= HISTOGRAM_ROWS and set(rows) <= set(range(game.actions))
    every = -(-buffer.size // HISTOGRAM_ROWS)
    assert np.array_equal(rows, played.action[::every])
    assert np.array_equal(histograms["values/return"], played.target[::every])
    values = learner.online(torch.from_numpy(played.observation.view(np.int64)))
    wanted = values.detach().numpy()[::every][np.arange(len(rows)), rows]
    assert np.allclose(histograms["values/played"], wanted, atol=1e-6)
    first = next(name for name in norms)
    matrix = dict(learner.online.named_parameters())[first.removeprefix("weights/norm_of_")]
    assert abs(norms[first] - float(matrix.detach().norm())) < 1e-4 and len(norms) == 5  # with the head of the value
