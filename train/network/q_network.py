"""Q-network, its number format and its player; weights may be shared by interchangeable parts, such as suits."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from busso.cards.compiled.batch import next_bits, random_legal
from busso.cards.compiled.bits import lowest, unpack
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import mix, uniform
from busso.cards.compiled.symmetry import Symmetry
from busso.cards.game import Games
from busso.cards.play import Actions, Decisions
from busso.train.network.matmul import OwnAndMean, by_own_code, equivariant, linear, sum_of_parts
from busso.train.network.packed_linear import PackedLinear

FORWARD_ROWS = 1024  # rows per forward pass on a CPU: activations of 1024 x 256 fit the cache


def learner_format(setting: str, device: torch.device) -> torch.dtype:
    """Return the learner's number format on this device for the setting `learner.precision`."""
    dtype: torch.dtype = fastest_format(device) if setting == "auto" else getattr(torch, setting)
    return dtype


def fastest_format(device: torch.device) -> torch.dtype:
    """Return the fastest format with native instructions on the device; players always use it.

    It is bfloat16 if the GPU, or the CPU by AVX512-BF16 or AMX, has it; emulation is many times slower than float32.
    """
    if device.type == "cuda":
        capable = torch.cuda.is_bf16_supported(including_emulation=False)
    else:  # private; the public get_capabilities of PyTorch 2.13 was not looked for in 2.11, which busso serves, too
        capable = torch.cpu._is_avx512_bf16_supported() or torch.cpu._is_amx_tile_supported()
    return torch.bfloat16 if capable else torch.float32


class QNetwork(nn.Module):
    """Packed observations `[batch, words]` -> one value per action `[batch, actions]`, legal or not, in float32.

    `format` is the number format in which it computes.
    """

    def __init__(self, actions: int) -> None:
        super().__init__()
        self.actions = actions
        self.format = torch.float32

    @property
    def device(self) -> torch.device:
        """Device of the weights."""
        return next(self.parameters()).device

    def taken(self, words: Tensor, actions: Tensor) -> Tensor:
        """Return the value of one action for each observation, `[batch]`."""
        return self(words).gather(1, actions.long().unsqueeze(1)).squeeze(1)

    def to_format(self, dtype: torch.dtype) -> QNetwork:
        """Return the network, converted for play in `dtype` if it can compute in that."""
        return self


class DenseNetwork(QNetwork):
    """Q-network of hidden layers with ReLU.

    With `dueling`, value and advantages are separate outputs, `Q = V + A - mean A` (Wang et al., 2016, equation 9).

    The hidden layers compute in the number format `format`. The output layer is always float32: values near 1000 have
    steps of 4 in bfloat16, more than the differences between actions. Weights of a learning network are float32 too, as
    sums of many small steps need it (Micikevicius et al., 2018, section 3.1).
    """

    def __init__(self, seen: Symmetry | int, actions: int, hidden: Sequence[int], dueling: bool) -> None:
        """Build the network for the first `seen` bits of an observation, or for those of a symmetry."""
        super().__init__(actions)
        self.input = PackedLinear(seen, hidden[0])
        self.body = self._body(hidden)
        self.head = nn.Linear(hidden[-1], actions // self.input.parts)
        self.value = nn.Linear(hidden[-1], 1) if dueling else None
        self.requires_grad_(False)

    def _body(self, hidden: Sequence[int]) -> nn.Sequential:
        """Return the layers between hidden layers of these widths, whose names are in checkpoints."""
        self._hidden = [nn.Linear(before, after) for before, after in pairwise(hidden)]
        layers = [each for layer in self._hidden for each in (nn.ReLU(inplace=True), layer)]
        return nn.Sequential(*layers, nn.ReLU(inplace=True))

    def to_format(self, dtype: torch.dtype) -> DenseNetwork:
        """Convert the hidden layers' weights to `dtype` for play, and return the network."""
        self.format = dtype
        self.body.to(dtype)
        if self.input.weight.device.type != "cpu":
            self.input.to(dtype)
        return self

    def forward(self, words: Tensor) -> Tensor:
        """Return the values of all actions."""
        return self._output(self._features(words).float())

    def _features(self, words: Tensor) -> Tensor:
        """Return the output of the last hidden layer."""
        x = self.input(words, self.format)
        for layer in self._hidden:
            x = linear(x, layer.weight, layer.bias, relu=True)
        return x

    def _output(self, features: Tensor) -> Tensor:
        advantage = linear(features, self.head.weight, self.head.bias)
        if self.value is None:
            return advantage
        value = linear(features, self.value.weight, self.value.bias)
        return value + advantage - advantage.mean(dim=1, keepdim=True)


def legal_tensor(masks: Tensor, actions: int) -> Tensor:
    """Convert bit masks `[batch]` (int64) to booleans `[batch, actions]`."""
    if by_own_code(masks):  # many times faster than shifting tensors
        packed = masks.numpy().view(np.uint64)[:, None]
        return torch.from_numpy(unpack(packed, actions, np.empty((len(masks), actions), np.bool_)))
    return (masks.unsqueeze(-1) >> torch.arange(actions, device=masks.device)) & 1 != 0


@njit(nogil=True)
def fill_forced_moves(masks: NDArray[np.uint64], actions: Actions) -> NDArray[np.int64]:
    """Write the lowest legal action of each row; return the rows that have more than one."""
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
    """Write an epsilon-greedy legal action for each of `rows`.

    `values` has one row per entry of `rows`; the other arrays are indexed by these entries. Returns the rows whose
    action does not have the greatest value; a random draw can also be greedy.
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
        if epsilon > 0:  # else no number is drawn
            bits = next_bits(generators, games[row])
            if uniform(bits) < epsilon:
                drawn = random_legal(mask, mix(bits))
                actions[row] = drawn
                if values[k, drawn] < values[k, best]:
                    explored[count] = row
                    count += 1
    return explored[:count]


@njit(nogil=True)
def best_values(values: NDArray[np.float32], masks: NDArray[np.uint64], games: Games, out: NDArray[np.float32]) -> None:
    """Write the greatest value of a legal action of each row to `out` at its game."""
    for row in range(masks.size):
        mask = masks[row]
        best = values[row, lowest(mask)]
        while mask != np.uint64(0):
            best = max(best, values[row, lowest(mask)])
            mask &= mask - np.uint64(1)
        out[games[row]] = best


class NetworkPlayer:
    """Epsilon-greedy player by a network.

    `greedy[game]` is True if no legal action has a greater value than the latest action in that game of the batch. With
    `keeps_values`, `value[game]` is the greatest value, also for forced moves.
    """

    def __init__(self, network: QNetwork, epsilon: float = 0.0, keeps_values: bool = False) -> None:
        self._network = network
        self.epsilon = epsilon
        self.keeps_values = keeps_values
        self._generators = np.zeros(0, np.uint64)
        self.greedy = np.ones(0, np.bool_)
        self.value = np.zeros(0, np.float32)

    def begin(self, seeds: NDArray[np.uint64]) -> None:
        """Start a batch of games; exploration is determined by `seeds`."""
        self._generators = seeds.copy()
        self.greedy = np.ones(seeds.size, np.bool_)
        self.value = np.zeros(seeds.size, np.float32)

    def act(self, decisions: Decisions) -> Actions:
        """Return one action per game, with one forward pass (in chunks on a CPU) over the games with a choice."""
        masks, games = decisions.legal, decisions.games
        actions = np.empty(games.size, np.uint8)
        rows = fill_forced_moves(masks, actions)
        self.greedy[games] = True
        if rows.size or self.keeps_values:
            every = self.keeps_values or rows.size == games.size
            values = self.values((decisions if every else decisions.of(rows)).observation)
            if self.keeps_values:
                best_values(values, masks, games, self.value)
                values = values[rows]
            explored = choose(values, rows, masks, games, self._generators, self.epsilon, actions)
            self.greedy[games[explored]] = False
        return actions

    @torch.inference_mode()
    def values(self, words: NDArray[np.uint64]) -> NDArray[np.float32]:
        """Return the values `[rows, actions]` of packed observations."""
        device = self._network.device
        packed = torch.from_numpy(words.view(np.int64)).to(device)
        parts = torch.split(packed, FORWARD_ROWS) if device.type == "cpu" else [packed]
        return np.concatenate([self._network(part).cpu().numpy() for part in parts])


class EquivariantNetwork(DenseNetwork):
    """Q-network whose values are equivariant in the parts.

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

    def taken(self, words: Tensor, actions: Tensor) -> Tensor:
        """Compute advantages only in the part of each action; their mean over all is linear in the mean features."""
        if self.value is None or not by_own_code(words):
            return super().taken(words, actions)
        parts, head = self.input.parts, self.head
        chosen, each = actions.long(), self.actions // parts
        rows = chosen // each * len(words) + torch.arange(len(words))
        own, mean = OwnAndMean.apply(self._features(words), rows, parts)  # type: ignore[no-untyped-call]
        advantage = linear(own, head.weight, head.bias).gather(1, (chosen % each).unsqueeze(1))
        weight = self.value.weight - head.weight.mean(0, keepdim=True)
        return (advantage + linear(mean, weight, self.value.bias - head.bias.mean())).squeeze(1)

    def _output(self, features: Tensor) -> Tensor:
        parts = self.input.parts
        by_part = linear(features, self.head.weight, self.head.bias).view(parts, -1, self.actions // parts)
        advantage = by_part.transpose(0, 1).reshape(-1, self.actions)
        if self.value is None:
            return advantage
        of_mean = sum_of_parts(features, parts) / parts
        value = linear(of_mean, self.value.weight, self.value.bias)
        return value + advantage - advantage.mean(dim=1, keepdim=True)
