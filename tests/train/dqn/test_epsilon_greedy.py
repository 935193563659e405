"""Choosing by tensors: the same draws and actions as the compiled functions, bit for bit."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cards.compiled import splitmix
from cards.compiled.splitmix import stream
from train.dqn.network import q_network as network
from train.dqn.network.q_network import fill_forced_moves
from train.dqn.players import epsilon_greedy as choice


def tensor(words: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(words.view(np.int64))


def bits(words: torch.Tensor) -> list[int]:
    return words.numpy().view(np.uint64).tolist()


@given(st.integers(0, 2**64 - 1), st.floats(0, 1))
def test_the_threshold_is_that_of_epsilon_to_the_last_bit(word: int, epsilon: float) -> None:
    for near in (word, (math.ceil(epsilon * 2**53) << 11) % 2**64, ((math.ceil(epsilon * 2**53) - 1) << 11) % 2**64):
        below = (near >> 11) < choice.exploration_threshold(epsilon)
        assert below == (splitmix.uniform(np.uint64(near)) < epsilon)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("as_tensor", [False, True])
@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_choices_are_those_of_the_compiled_function(epsilon: float, as_tensor: bool, device: str) -> None:
    """Values with many ties, masks of any kind with forced moves among them, many rounds from the same generators."""
    torch.manual_seed(1)
    rows, actions = 400, 64
    games = np.arange(rows)
    generators = stream(1, "test", 0, rows)
    there, forced, explored_once = tensor(generators.copy()).to(device), 0, 0
    for k in range(12):
        masks = stream(2, "masks", k * rows, rows)
        for j in range(rows):  # from one legal action to 64
            while j % 16 and masks[j].item().bit_count() > 1 + 3 * (j % 16):
                masks[j] &= masks[j] - np.uint64(1)
        masks[::16] = np.uint64(1) << (masks[::16] % np.uint64(64))
        values = torch.randint(-2, 3, (rows, actions)).float()
        expected = np.empty(rows, np.uint8)
        choosing = fill_forced_moves(masks, expected)
        explored = network.choose(values.numpy()[choosing], choosing, masks, games, generators, epsilon, expected)
        threshold = choice.exploration_threshold(epsilon)
        limit = torch.tensor(threshold, device=device) if as_tensor else threshold
        found = choice.choose(values.to(device), tensor(masks).to(device), there, limit)
        assert found.action.tolist() == expected.tolist()
        assert found.explored.nonzero().flatten().tolist() == explored.tolist()
        there = found.generators if epsilon else there
        assert bits(there.cpu()) == generators.tolist()
        forced += rows - choosing.size
        explored_once += explored.size
    assert forced > 100 and (explored_once > 500) == (epsilon > 0)


def test_an_action_is_legal_whatever_the_values_are() -> None:
    """Where nothing is legal, because the game is over, it is 0."""
    inf, nan = math.inf, math.nan
    values = torch.tensor([[1.0, -inf, -inf], [nan, nan, nan], [9.0, nan, 2.0], [1.0, 2.0, inf], [5.0, 5.0, 5.0]])
    masks = torch.tensor([0b110, 0b100, 0b110, 0b111, 0])
    found = choice.choose(values, masks, torch.zeros(5, dtype=torch.int64), 0)
    assert found.action.tolist() == [1, 2, 2, 2, 0] and not found.explored.any()
    assert choice.choose(values, masks, torch.arange(5), 2**53).action[-1] == 0
