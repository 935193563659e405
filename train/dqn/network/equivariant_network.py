"""Q-network for games with interchangeable parts that share weights, such as suits without trumps."""

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from busso.train.dqn.network.matmul import equivariant, linear, sum_of_parts
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

    def _body(self, hidden: Sequence[int]) -> nn.Sequential:
        self._own = [nn.Linear(before, after) for before, after in pairwise(hidden)]
        self._mean = [nn.Linear(before, after, bias=False) for before, after in pairwise(hidden)]
        return nn.Sequential(*(layer for pair in zip(self._own, self._mean, strict=True) for layer in pair))

    def _features(self, words: Tensor) -> Tensor:
        x = self.input(words, self.format)
        for own, mean in zip(self._own, self._mean, strict=True):
            x = equivariant(x, own.weight, own.bias, mean.weight, self.input.parts)
        return x

    def _output(self, features: Tensor) -> Tensor:
        parts = self.input.parts
        by_part = linear(features, self.head.weight, self.head.bias).view(parts, -1, self.actions // parts)
        advantage = by_part.transpose(0, 1).reshape(-1, self.actions)
        if self.value is None:
            return advantage
        of_mean = sum_of_parts(features, parts) / parts
        value = linear(of_mean, self.value.weight, self.value.bias)
        return value + advantage - advantage.mean(dim=1, keepdim=True)
