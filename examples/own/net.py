"""Custom network: observations `[batch, bits]` of 0.0 and 1.0 -> values `[batch, actions]`."""

import torch
from torch import nn


class Residual(nn.Module):
    """Residual network with normalized blocks."""

    def __init__(self, bits, actions, width: int = 128, depth: int = 2):
        super().__init__()
        self.first = nn.Linear(bits, width)
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(width), nn.Linear(width, width)) for _ in range(depth))
        self.last = nn.Linear(width, actions)

    def forward(self, seen):
        """Return the values of all actions, legal or not."""
        x = torch.relu(self.first(seen))
        for block in self.blocks:
            x = x + torch.relu(block(x))
        return self.last(x)


def quantile(value, target):
    """Return a quantile loss, for learner.loss=./net.py:quantile."""
    error = target - value
    return torch.maximum(0.6 * error, -0.4 * error).mean()
