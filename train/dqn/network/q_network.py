"""The Q-network, its forward and its backward pass, and the player that asks it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from cards.compiled.bits import lowest, unpack
from cards.compiled.jit import njit
from cards.compiled.splitmix import GAMMA, mix, uniform
from cards.game import Games
from cards.play import Actions, Decisions
from cards.players import random_legal
from train.dqn.network.matmul import linear, multiply, multiply_into
from train.dqn.network.packed_linear import PackedLinear

FORWARD_ROWS = 1024  # rows of one forward pass on a CPU: activations of 1024 x 256 stay in the cache


class Trace(NamedTuple):
    """A forward pass: the values `[batch, actions]`, and what the backward pass wants to know of how they came."""

    values: Tensor
    seen: Tensor  # by the first layer
    hidden: list[Tensor]  # outputs of the hidden layers, in their number format
    features: Tensor  # the last of them in float32
    means: list[Tensor]  # of the outputs over the parts of the game, where there are such

    def first(self, rows: int) -> Trace:
        """Of the first rows of the batch alone."""
        batch = len(self.values)

        def head(tensor: Tensor) -> Tensor:  # which may have a row for each part
            return tensor[: rows * (len(tensor) // batch)]

        lists = ([head(output) for output in outputs] for outputs in (self.hidden, self.means))
        hidden, means = lists
        return Trace(self.values[:rows], head(self.seen), hidden, head(self.features), means)


class QNetwork(nn.Module):
    """Packed observations `[batch, words]` -> one value per action `[batch, actions]`, by hidden layers with ReLU.

    With `dueling`, value and advantages are separate outputs, `Q = V + A - mean A` (Wang et al., 2016, equation 9).

    The hidden layers may multiply in a shorter number format (`to_format`), which their activations then stay in. The
    output layer never does: values near 1000 have steps of 4 in bfloat16, more than actions differ by.

    No autograd: `trace` is the forward pass for who learns, `backward` gives the gradient.
    """

    def __init__(self, bits: int, actions: int, hidden: Sequence[int], dueling: bool) -> None:
        super().__init__()
        self.actions = actions
        self.input = PackedLinear(bits, hidden[0])
        layers: list[nn.Module] = []
        for before, after in pairwise(hidden):
            layers += [nn.ReLU(inplace=True), nn.Linear(before, after)]
        self.body = nn.Sequential(*layers, nn.ReLU(inplace=True))
        self.head = nn.Linear(hidden[-1], actions)
        self.value = nn.Linear(hidden[-1], 1) if dueling else None
        self._hidden = [layer for layer in layers if isinstance(layer, nn.Linear)]
        self.requires_grad_(False)

    def to_format(self, dtype: torch.dtype, gathers: bool = True) -> QNetwork:
        """This network with hidden layers that are kept and multiply in `dtype`; the output layer stays float32.

        `gathers`: on a CPU the first layer adds rows of a float32 weight, see `PackedLinear`.
        """
        self.input.to_format(dtype, gathers)
        self.body.to(dtype)
        return self

    def products(self) -> int:
        """Multiplications of one row's forward pass, with all bits unpacked."""
        return sum(weight.numel() for weight in self.parameters() if weight.dim() == 2)

    def forward(self, words: Tensor) -> Tensor:
        """Values of all actions, legal or not, in float32."""
        return self.trace(words).values

    def trace(self, words: Tensor) -> Trace:
        """The same with all that `backward` needs."""
        seen, output = self.input.trace(words)
        hidden = [output]
        for layer in self._hidden:
            hidden.append(linear(hidden[-1], layer.weight, layer.bias, relu=True))
        features = hidden[-1].float()
        return Trace(self._output(features), seen, hidden, features, [])

    def _output(self, features: Tensor) -> Tensor:
        advantage = linear(features, self.head.weight, self.head.bias)
        if self.value is None:
            return advantage
        value = linear(features, self.value.weight, self.value.bias)
        return value + advantage - advantage.mean(dim=1, keepdim=True)

    def backward(self, trace: Trace, of_values: Tensor, gradient: QNetwork) -> None:
        """Write the gradient of all weights into those of `gradient`, given that of the values, `[batch, actions]`.

        The chain rule layer by layer, from the last to the first: each gets the gradient of its output.
        """
        of_output = self._backward_output(trace.features, of_values, gradient).to(trace.hidden[-1].dtype)
        layers, into = self._hidden, gradient._hidden
        for k in reversed(range(len(layers))):
            of_sum = before_relu(of_output, trace.hidden[k + 1])
            write(into[k], trace.hidden[k], of_sum)
            of_output = multiply(of_sum, layers[k].weight)
        of_sum = before_relu(of_output, trace.hidden[0])
        self.input.gradient(trace.seen, of_sum, gradient.input.weight)
        write_sum(of_sum, gradient.input.bias)

    def _backward_output(self, features: Tensor, of_values: Tensor, gradient: QNetwork) -> Tensor:
        if self.value is None or gradient.value is None:
            write(gradient.head, features, of_values)
            return multiply(of_values, self.head.weight)
        of_value = of_values.sum(dim=1, keepdim=True)
        of_advantage = of_values - of_value / of_values.shape[1]
        write(gradient.value, features, of_value)
        write(gradient.head, features, of_advantage)
        return torch.addmm(multiply(of_advantage, self.head.weight), of_value, self.value.weight)


def before_relu(of_output: Tensor, output: Tensor) -> Tensor:
    """The gradient where the ReLU let something through, 0 elsewhere."""
    result: Tensor = torch.ops.aten.threshold_backward(of_output, output, 0)
    return result


def write(into: nn.Linear, x: Tensor, of_output: Tensor) -> None:
    """Write the gradient of a layer's weight and bias, given its input and the gradient of its output."""
    multiply_into(into.weight, of_output.t(), x)
    write_sum(of_output, into.bias)


def write_sum(of_output: Tensor, bias: Tensor) -> None:
    """Write the gradient of a bias, given that of the output."""
    if bias.dtype == of_output.dtype:
        torch.sum(of_output, 0, out=bias)
    else:
        bias.copy_(of_output.sum(0))


def legal_tensor(masks: Tensor, actions: int) -> Tensor:
    """Bit masks `[batch]` (int64) -> booleans `[batch, actions]`."""
    if masks.device.type == "cpu":  # the compiled loop is many times faster than shifting tensors
        packed = masks.numpy().view(np.uint64)[:, None]
        return torch.from_numpy(unpack(packed, actions, np.empty((len(masks), actions), np.bool_)))
    return (masks.unsqueeze(-1) >> torch.arange(actions, device=masks.device)) & 1 != 0


@njit(nogil=True)
def fill_forced_moves(masks: NDArray[np.uint64], actions: Actions) -> NDArray[np.int64]:
    """Write the lowest legal action of each row; returns the rows that have another."""
    rows = np.empty(masks.size, np.int64)
    count = 0
    for row in range(masks.size):
        actions[row] = lowest(masks[row])
        if masks[row] & (masks[row] - np.uint64(1)) != np.uint64(0):
            rows[count] = row
            count += 1
    return rows[:count]


@njit(nogil=True)
def choose(
    values: NDArray[np.float32],
    rows: NDArray[np.int64],
    masks: NDArray[np.uint64],
    games: Games,
    generators: NDArray[np.uint64],
    epsilon: float,
    actions: Actions,
) -> NDArray[np.int64]:
    """Write the legal action of the greatest value, or with probability `epsilon` any legal one, for each of `rows`.

    `values` has a row for each of `rows`; the other arrays are indexed by them. Returns the rows whose action is not
    one of greatest value: chance may draw the greedy one, too.
    """
    explored = np.empty(rows.size, np.int64)
    count = 0
    for k in range(rows.size):
        row = rows[k]
        mask = masks[row]
        best = lowest(mask)
        left = mask & (mask - np.uint64(1))
        while left != np.uint64(0):
            action = lowest(left)
            left &= left - np.uint64(1)
            if values[k, action] > values[k, best]:
                best = action
        actions[row] = best
        if epsilon > 0:
            generators[games[row]] += GAMMA
            bits = mix(generators[games[row]])
            if uniform(bits) < epsilon:
                actions[row] = random_legal(mask, mix(bits))
                if values[k, actions[row]] < values[k, best]:
                    explored[count] = row
                    count += 1
    return explored[:count]


class NetworkPlayer:
    """Plays the legal action of the greatest value, or with probability `epsilon` a random legal one.

    `greedy[game]` says of its newest action in each game of the batch whether no legal one has a greater value.
    """

    def __init__(self, network: QNetwork, epsilon: float = 0.0) -> None:
        self._network = network
        self.epsilon = epsilon
        self._generators = np.zeros(0, np.uint64)
        self.greedy = np.ones(0, np.bool_)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """Start a batch of games; exploration follows from `seeds`."""
        self._generators = seeds.copy()
        self.greedy = np.ones(seeds.size, np.bool_)

    def act(self, decisions: Decisions) -> Actions:
        """One action per game; one forward pass (in pieces on a CPU) over those that have a choice."""
        masks, games = decisions.legal, decisions.games
        actions = np.empty(games.size, np.uint8)
        rows = fill_forced_moves(masks, actions)
        self.greedy[games] = True
        if rows.size:
            asked = decisions if rows.size == games.size else decisions.of(rows)
            values = self.values(asked.observation)
            explored = choose(values, rows, masks, games, self._generators, self.epsilon, actions)
            self.greedy[games[explored]] = False
        return actions

    @torch.inference_mode()
    def values(self, words: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Values `[rows, actions]` of packed observations."""
        device = self._network.head.weight.device
        packed = torch.from_numpy(words.view(np.int64)).to(device)
        rows = FORWARD_ROWS if device.type == "cpu" else max(1, len(packed))
        if len(packed) <= rows:
            result: NDArray[np.float32] = self._network(packed).cpu().numpy()
            return result
        result = np.empty((len(packed), self._network.actions), np.float32)
        for first in range(0, len(packed), rows):
            result[first : first + rows] = self._network(packed[first : first + rows]).numpy()
        return result
