"""The Q-network of a game with parts that are alike, such as suits without trumps: one looks at each of them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import Tensor, nn

from cards.symmetry import Symmetry
from train.dqn.network.matmul import linear, multiply, multiply_into
from train.dqn.network.part_linear import PartLinear
from train.dqn.network.q_network import QNetwork, Trace, before_relu, write, write_sum


class SymmetricNetwork(QNetwork):
    """Packed observations `[batch, words]` -> one value per action `[batch, actions]`, the same for any names of parts.

    The first layer sees what an observation says of one part, and what it says of none. Each further one sees what
    came of the part, and the mean over all parts: `relu(W x + U mean x + b)`, the linear maps that keep the symmetry
    (Zaheer et al., 2017, Deep Sets, lemma 3). The last gives the values of the part's actions. So exchanging two parts
    of an observation exchanges the values of their actions, and what is learned of one part is known of all.

    With `dueling`, the value is of the mean over the parts. Hidden tensors have a row for each part, `[batch * parts]`.
    Number formats and the way of the gradient are those of `QNetwork`.
    """

    def __init__(self, symmetry: Symmetry, actions: int, hidden: Sequence[int], dueling: bool) -> None:
        nn.Module.__init__(self)
        self.actions = actions
        self.parts = symmetry.parts
        self.input = PartLinear(symmetry, hidden[0])
        self._own = [nn.Linear(before, after) for before, after in pairwise(hidden)]
        self._mean = [nn.Linear(before, after, bias=False) for before, after in pairwise(hidden)]
        self.body = nn.Sequential(*(layer for pair in zip(self._own, self._mean, strict=True) for layer in pair))
        self.head = nn.Linear(hidden[-1], actions // symmetry.parts)
        self.value = nn.Linear(hidden[-1], 1) if dueling else None
        self.requires_grad_(False)

    def products(self) -> int:
        """See `QNetwork`; what is the mean over the parts is multiplied once."""
        of_means = sum(layer.weight.numel() for layer in [*self._mean, *([self.value] if self.value else [])])
        return self.parts * (super().products() - of_means) + of_means

    def trace(self, words: Tensor) -> Trace:
        """See `QNetwork`."""
        seen, output = self.input.trace(words)
        hidden, means = [output], []
        for own, mean in zip(self._own, self._mean, strict=True):
            means.append(self._of_parts(hidden[-1]).mean(1))
            output = linear(hidden[-1], own.weight, own.bias)
            self._of_parts(output).add_(multiply(means[-1], mean.weight.t()).unsqueeze(1))
            hidden.append(output.relu_())
        features = hidden[-1].float()
        return Trace(self._output(features), seen, hidden, features, means)

    def _of_parts(self, rows: Tensor) -> Tensor:
        return rows.view(-1, self.parts, rows.shape[1])

    def _output(self, features: Tensor) -> Tensor:
        advantage = linear(features, self.head.weight, self.head.bias).view(-1, self.actions)
        if self.value is None:
            return advantage
        value = linear(self._of_parts(features).mean(1), self.value.weight, self.value.bias)
        return value + advantage - advantage.mean(dim=1, keepdim=True)

    def backward(self, trace: Trace, of_values: Tensor, gradient: QNetwork) -> None:
        """See `QNetwork`."""
        assert isinstance(gradient, SymmetricNetwork)
        of_output = self._backward_output(trace.features, of_values, gradient).to(trace.hidden[-1].dtype)
        for k in reversed(range(len(self._own))):
            of_sum = before_relu(of_output, trace.hidden[k + 1])
            write(gradient._own[k], trace.hidden[k], of_sum)
            of_parts = self._of_parts(of_sum).sum(1)
            multiply_into(gradient._mean[k].weight, of_parts.t(), trace.means[k])
            of_output = multiply(of_sum, self._own[k].weight)
            of_mean = multiply(of_parts, self._mean[k].weight).div_(self.parts)
            self._of_parts(of_output).add_(of_mean.unsqueeze(1))
        of_sum = before_relu(of_output, trace.hidden[0])
        self.input.gradient(trace.seen, of_sum, gradient.input.weight)
        write_sum(of_sum, gradient.input.bias)

    def _backward_output(self, features: Tensor, of_values: Tensor, gradient: QNetwork) -> Tensor:
        if self.value is None or gradient.value is None:
            of_action = of_values.reshape(len(features), -1)
            write(gradient.head, features, of_action)
            return multiply(of_action, self.head.weight)
        of_value = of_values.sum(dim=1, keepdim=True)
        of_action = (of_values - of_value / self.actions).reshape(len(features), -1)
        write(gradient.head, features, of_action)
        write(gradient.value, self._of_parts(features).mean(1), of_value)
        of_features = multiply(of_action, self.head.weight)
        self._of_parts(of_features).add_((of_value @ self.value.weight / self.parts).unsqueeze(1))
        return of_features
