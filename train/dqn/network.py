"""The Q-network, the kernels it runs on, and the player that asks it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numba import njit
from numpy.typing import NDArray
from torch import Tensor, nn

from cards.bits import has, lowest
from cards.game import Games
from cards.play import Actions, Decisions, random_legal
from cards.splitmix import GAMMA, mix, uniform
from train.dqn.packed_linear import PackedLinear

FORWARD_ROWS = 1024  # rows of one forward pass on a CPU: activations of 1024 x 256 stay in the cache


class _OneDnnProduct(torch.autograd.Function):
    """A float32 linear layer through oneDNN instead of MKL, which is PyTorch's own choice for float32 on a CPU."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _one_dnn(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors
        (gradient,) = gradients
        to_input = _one_dnn(gradient, weight.t(), None) if ctx.needs_input_grad[0] else None
        return to_input, _one_dnn(gradient.t(), x.t(), None), gradient.sum(0)


def _one_dnn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def one_dnn_available() -> bool:
    """Whether this build of PyTorch has the oneDNN linear operator."""
    return torch._C._has_mkldnn and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@cache
def prefers_one_dnn() -> bool:
    """Whether float32 layers go through oneDNN on this CPU: where it was measured to be faster than MKL, on AMD's.

    `python -m tests.bench kernels` measures it, docs/performance.md has the figures. A run does not: two starts on
    one machine could then choose differently, and would not compute the same bits.
    """
    cpu = Path("/proc/cpuinfo")
    return one_dnn_available() and cpu.exists() and "AuthenticAMD" in cpu.read_text()


class Linear(nn.Linear):
    """A linear layer on the fastest kernel known for its tensor: see `prefers_one_dnn`, else PyTorch's choice."""

    def forward(self, x: Tensor) -> Tensor:
        """`[batch, in]` -> `[batch, out]`."""
        plain = x.device.type != "cpu" or torch.is_autocast_enabled("cpu") or x.dtype != torch.float32
        if plain or not prefers_one_dnn():
            return super().forward(x)
        return _OneDnnProduct.apply(x, self.weight, self.bias)  # type: ignore[no-untyped-call]


class QNetwork(nn.Module):
    """Packed observations `[batch, words]` -> one value per action `[batch, actions]`, by hidden layers with ReLU.

    With `dueling`, value and advantages are separate outputs, `Q = V + A - mean A` (Wang et al., 2016, equation 9).

    The hidden layers may multiply in a shorter number format (`mixed` to learn, `to_format` to play). The output
    layer never does: values near 1000 have steps of 4 in bfloat16, more than actions differ by.
    """

    def __init__(self, bits: int, actions: int, hidden: Sequence[int], dueling: bool) -> None:
        super().__init__()
        self._mixed: torch.dtype = torch.float32
        self._stored: torch.dtype = torch.float32
        self.input = PackedLinear(bits, hidden[0])
        layers: list[nn.Module] = []
        for before, after in pairwise(hidden):
            layers += [nn.ReLU(inplace=True), Linear(before, after)]
        self.body = nn.Sequential(*layers, nn.ReLU(inplace=True))
        self.head = Linear(hidden[-1], actions)
        self.value = Linear(hidden[-1], 1) if dueling else None

    def forward(self, words: Tensor) -> Tensor:
        """Values of all actions, legal or not, in float32."""
        with torch.autocast(words.device.type, self._mixed, enabled=self._mixed != torch.float32):
            features = self.body(self.input(words).to(self._stored))
        features = features.float()
        advantage: Tensor = self.head(features)
        if self.value is None:
            return advantage
        value: Tensor = self.value(features)
        return value + advantage - advantage.mean(dim=1, keepdim=True)

    def mixed(self, dtype: torch.dtype) -> QNetwork:
        """This network with hidden layers that multiply in `dtype`, from weights that stay float32: for learning."""
        self._mixed = dtype
        return self

    def to_format(self, dtype: torch.dtype) -> QNetwork:
        """This network with hidden layers that are kept and multiply in `dtype`: for playing, a copy of the weights.

        The input layer only adds on a CPU, and stays float32.
        """
        self._stored = dtype
        self.body.to(dtype)
        return self


def legal_tensor(masks: Tensor, actions: int) -> Tensor:
    """Bit masks `[batch]` (int64) -> booleans `[batch, actions]`."""
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
        for action in range(best + 1, values.shape[1]):
            if has(mask, action) and values[k, action] > values[k, best]:
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
            values = self.values(decisions.of(rows).observation)
            explored = choose(values, rows, masks, games, self._generators, self.epsilon, actions)
            self.greedy[games[explored]] = False
        return actions

    @torch.inference_mode()
    def values(self, words: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Values `[rows, actions]` of packed observations."""
        device = self._network.head.weight.device
        packed = torch.from_numpy(words.view(np.int64)).to(device)
        rows = FORWARD_ROWS if device.type == "cpu" else max(1, len(packed))
        pieces = torch.split(packed, rows)
        parts = [self._network(piece) for piece in pieces]
        result: NDArray[np.float32] = (torch.cat(parts) if len(parts) > 1 else parts[0]).cpu().numpy()
        return result
