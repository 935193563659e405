"""Q-network for games with interchangeable parts that share weights, such as suits without trumps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from busso.cards.compiled.symmetry import Symmetry
from busso.train.dqn.network.matmul import equivariant, linear, sum_of_parts
from busso.train.dqn.network.packed_linear import PackedLinear
from busso.train.dqn.network.q_network import QNetwork


class EquivariantNetwork(QNetwork):
    """Packed observations `[batch, words]` -> one value per action `[batch, actions]`, equivariant in the parts.

    The first layer sees the observation bits of one part, and those of no part. Each later layer sees the features of
    the part and their mean over all parts: `relu(W x + U mean x + b)`, the linear maps that keep the symmetry (Zaheer
    et al., 2017, Deep Sets, lemma 3). The last layer gives the values of the part's actions. Exchanging two parts of an
    observation thus exchanges the values of their actions, and what is learned about one part holds for all.

    With `dueling`, the state value is computed from the mean over the parts. Hidden tensors have a row per part and
    observation, `[parts * batch]`, with a part's rows contiguous, so that a sum over parts is a sum of blocks.
    """

    def __init__(self, symmetry: Symmetry, actions: int, hidden: Sequence[int], dueling: bool) -> None:
        nn.Module.__init__(self)
        self.actions = actions
        self.format = torch.float32
        self.parts = symmetry.parts
        self.input = PackedLinear(symmetry, hidden[0])
        self._own = [nn.Linear(before, after) for before, after in pairwise(hidden)]
        self._mean = [nn.Linear(before, after, bias=False) for before, after in pairwise(hidden)]
        self.body = nn.Sequential(*(layer for pair in zip(self._own, self._mean, strict=True) for layer in pair))
        self.head = nn.Linear(hidden[-1], actions // symmetry.parts)
        self.value = nn.Linear(hidden[-1], 1) if dueling else None
        self.requires_grad_(False)

    def _features(self, words: Tensor) -> Tensor:
        x = self.input(words, self.format)
        for own, mean in zip(self._own, self._mean, strict=True):
            x = equivariant(x, own.weight, own.bias, mean.weight, self.parts)
        return x

    def _output(self, features: Tensor) -> Tensor:
        by_part = linear(features, self.head.weight, self.head.bias).view(self.parts, -1, self.actions // self.parts)
        advantage = by_part.transpose(0, 1).reshape(-1, self.actions)
        if self.value is None:
            return advantage
        of_mean = sum_of_parts(features, self.parts) / self.parts
        value = linear(of_mean, self.value.weight, self.value.bias)
        return value + advantage - advantage.mean(dim=1, keepdim=True)
