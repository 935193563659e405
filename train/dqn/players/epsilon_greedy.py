"""Epsilon-greedy choices on the device of the values: the same draws and choices as `network.choose`."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from cards.compiled import splitmix
from train.dqn.kernels.nvrtc import launch
from train.dqn.kernels.operators import operator
from train.dqn.network.q_network import legal_tensor

ACTION, EXPLORED = 0x3F, 0x80  # of a byte: at most 64 actions, and whether another legal one has a greater value


def _signed(word: int) -> int:
    """The int64 with these 64 bits: torch has few operations on uint64."""
    return word - (1 << 64) if word >> 63 else word


GAMMA = _signed(int(splitmix.GAMMA))
_FIRST, _SECOND = (
    _signed(0xBF58476D1CE4E5B9),
    _signed(0x94D049BB133111EB),
)  # cards/compiled/splitmix.py
_UNIFORM_BITS = 53
_LOWEST = torch.finfo(torch.float32).min


class ChosenActions(NamedTuple):
    """One for each row of values."""

    action: Tensor  # int64
    explored: Tensor  # bool: another legal action has a greater value
    generators: Tensor  # int64: to be drawn from next time


def shifted(words: Tensor, by: int) -> Tensor:
    """The bits of int64 `words` moved down by 1 to 63 places, with zeros above: `>>` alone would repeat the sign."""
    return (words >> by) & ((1 << (64 - by)) - 1)


def mix(words: Tensor) -> Tensor:
    """`cards.compiled.splitmix.mix` of int64 words with the same bits; products wrap, as those of uint64 do."""
    words = (words ^ shifted(words, 30)) * _FIRST
    words = (words ^ shifted(words, 27)) * _SECOND
    return words ^ shifted(words, 31)


def below(bits: Tensor, count: Tensor) -> Tensor:
    """`cards.compiled.splitmix.below`: integers in [0, count) from 64 random bits each."""
    return (shifted(bits, 32) * count) >> 32


def exploration_threshold(epsilon: float) -> int:
    """How many of the 2 ** 53 values of `cards.compiled.splitmix.uniform` are below `epsilon`, exactly."""
    return math.ceil(epsilon * 2**_UNIFORM_BITS)


def nth_legal(legal: Tensor, n: Tensor) -> Tensor:
    """Index of the n-th true entry of each row of `legal`, counted from 0; 0 where there are fewer."""
    return (legal.cumsum(1) > n.unsqueeze(1)).byte().argmax(1)


def best_legal(values: Tensor, legal: Tensor) -> Tensor:
    """Index of the first of the greatest legal values of each row; 0 where nothing is legal.

    Always a legal one, whatever the values are: what is not finite counts as the least there is.
    """
    finite = values.float().nan_to_num(nan=_LOWEST, posinf=math.inf, neginf=_LOWEST)
    return finite.masked_fill(~legal, -math.inf).argmax(1)


def choose(values: Tensor, masks: Tensor, generators: Tensor, threshold: Tensor) -> ChosenActions:
    """The legal action of the greatest value, or with probability epsilon any legal one, for each row of values.

    `values` are `[rows, actions]`, `masks` bit masks of what is legal and `generators` the state of each row's draws,
    both int64 `[rows]`; `threshold` is that of epsilon. A row with one legal action draws nothing, and nothing legal (a
    game that is over) is action 0. The operations do not depend on any value, so a CUDA graph may capture them.
    """
    legal = legal_tensor(masks, values.shape[1])
    best = best_legal(values, legal)
    advanced = generators + GAMMA
    bits = mix(advanced)
    exploring = shifted(bits, 64 - _UNIFORM_BITS) < threshold
    drawn = nth_legal(legal, below(mix(bits), legal.sum(1)))
    action = torch.where(exploring, drawn, best)  # the same where only one is legal
    has_choice = (masks & (masks - 1)) != 0
    return ChosenActions(action, _is_worse(values, action, best), torch.where(has_choice, advanced, generators))


def _choose_drawn(values: Tensor, masks: Tensor, drawn: Tensor) -> Tensor:
    out = torch.empty_like(masks, dtype=torch.uint8)
    launch("choose", len(values), values, masks, drawn, out, values.shape[1])
    return out


@operator("choose_drawn(Tensor values, Tensor masks, Tensor drawn) -> Tensor", _choose_drawn)
def choose_drawn(values: Tensor, masks: Tensor, drawn: Tensor) -> Tensor:
    """As `choose`, with the random action that exploration takes in each row, int8, or -1.

    One uint8 each: the action, and EXPLORED. It is one operation on a GPU.
    """
    best = best_legal(values, legal_tensor(masks, values.shape[1]))
    action = torch.where(drawn < 0, best, drawn)
    return (action | _is_worse(values, action, best) * EXPLORED).byte()


def _is_worse(values: Tensor, action: Tensor, best: Tensor) -> Tensor:
    return _of(values, action) < _of(values, best)


def _of(values: Tensor, action: Tensor) -> Tensor:
    return values.gather(1, action.unsqueeze(1)).squeeze(1)
