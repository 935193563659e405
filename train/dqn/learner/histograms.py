"""What a learner's network says of a part of its replay buffer, for histograms; a look that changes nothing."""

from __future__ import annotations

from typing import Any

import torch
from numpy.typing import NDArray

from train.dqn.learner.learner import Learner
from train.dqn.replay.buffer import ReplayBuffer

ROWS = 1024  # of the buffer, evenly over it


def look(learner: Learner, replay: ReplayBuffer) -> tuple[dict[str, NDArray[Any]], dict[str, float]]:
    """Histograms, and norms of the weights. Nothing before anything was played. Waits for the device."""
    return (histograms(learner, replay), norms(learner)) if replay.size else ({}, {})


def histograms(learner: Learner, replay: ReplayBuffer) -> dict[str, NDArray[Any]]:
    """Actions that were played, their values, and what they brought until the bootstrap. Waits for the device."""
    batch = replay.spread(ROWS)
    with torch.inference_mode():
        values = learner.online(batch.observation)
        played = values.gather(1, batch.action.long().unsqueeze(1)).squeeze(1)
        found = {"values/played": played, "values/return": batch.n_step_return, "actions/played": batch.action}
    return {name: tensor.cpu().numpy() for name, tensor in found.items()}


def norms(learner: Learner) -> dict[str, float]:
    """The Euclidean norm of each matrix of weights, by its name."""
    matrices = [(name, each) for name, each in learner.online.named_parameters() if each.dim() > 1]
    sizes = torch.stack([torch.linalg.vector_norm(each.detach().float()) for _, each in matrices]).tolist()
    return {f"weights/norm_of_{name}": size for (name, _), size in zip(matrices, sizes, strict=True)}
