"""Values and gradients of the network, and the choice of an action."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.play import Decisions
from busso.train.network.packed_linear import PackedLinear
from busso.train.network.q_network import DenseNetwork, NetworkPlayer, choose, fill_forced_moves, legal_tensor
from busso.tressette import GAME
from tests.chips import Chip, emulated_chip


def test_gathered_sums_that_are_no_numbers_stay_none() -> None:
    layer = PackedLinear(2, 3)
    layer.weight.data = torch.tensor([[torch.nan, torch.inf, -torch.inf], [0.0, 0.0, 0.0]])
    for dtype in (torch.float32, torch.bfloat16):
        out = layer(torch.tensor([[1]]), dtype)
        assert out[0, 0].isnan() and out[0, 1:].tolist() == [torch.inf, 0.0]


def reference(
    network: DenseNetwork, weights: dict[str, torch.Tensor], words: torch.Tensor, first: torch.dtype, short: torch.dtype
) -> torch.Tensor:
    """Build the same network in plain PyTorch, for autograd; formats are of the first layer and the others."""
    x = torch.from_numpy(unpack(words.numpy().view(np.uint64), network.input.bits)).to(first)
    x = (x @ weights["input.weight"].to(first) + weights["input.bias"].to(first)).relu().to(short)
    for k, layer in enumerate(network.body):
        if isinstance(layer, torch.nn.Linear):
            x = functional.linear(x, weights[f"body.{k}.weight"].to(short), weights[f"body.{k}.bias"].to(short)).relu()
    advantage = functional.linear(x.float(), weights["head.weight"], weights["head.bias"])
    if network.value is None:
        return advantage
    value = functional.linear(x.float(), weights["value.weight"], weights["value.bias"])
    return value + advantage - advantage.mean(dim=1, keepdim=True)


@pytest.mark.parametrize("hidden", [[5], [8, 6, 7]])
@pytest.mark.parametrize("dueling", [False, True])
def test_values_and_gradients_equal_plain_pytorch(hidden: list[int], dueling: bool, chip: Chip) -> None:
    torch.manual_seed(0)
    network = DenseNetwork(100, 4, hidden, dueling)
    words = torch.randint(-(2**62), 2**62, (30, 2))  # the last 28 bits are not seen
    check_gradients(network, reference, words, getattr(torch, chip.format), 2 * 2.0**-8)


def check_gradients(
    network: DenseNetwork, plain: Callable[..., torch.Tensor], words: torch.Tensor, short: torch.dtype, off: float
) -> None:
    """Compare values and gradients with `plain`; bfloat16 allows errors relative to the greatest."""
    of_values = torch.randn(len(words), network.actions)
    weights = {name: tensor.clone().requires_grad_() for name, tensor in network.state_dict().items()}
    expected = plain(network, weights, words, torch.float32, short)
    expected.backward(of_values)  # type: ignore[no-untyped-call]
    network.format = short
    values = network.requires_grad_()(words)
    values.backward(of_values)
    share = off if short == torch.bfloat16 else 1e-5
    assert torch.allclose(values, expected, atol=share)
    for name, parameter in network.named_parameters():
        wanted = weights[name].grad
        assert wanted is not None and parameter.grad is not None and parameter.grad.dtype == torch.float32
        assert torch.allclose(parameter.grad, wanted, atol=share * float(wanted.abs().max())), name


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=5))
def test_legal_tensor_shows_the_bits(masks: list[int]) -> None:
    packed = torch.from_numpy(np.array(masks, np.uint64).view(np.int64))
    for name in ("float32_pytorch", "other_device"):
        with emulated_chip(name):
            shown = legal_tensor(packed, 64)
        assert [[mask >> a & 1 == 1 for a in range(64)] for mask in masks] == shown.tolist()


def chosen(values: list[list[float]], masks: list[int], epsilon: float, rounds: int = 1) -> np.ndarray:
    rows = np.arange(len(masks))
    generators = rows.astype(np.uint64)
    out = np.empty((rounds, rows.size), np.uint8)
    table = np.array(values, np.float32)
    for k in range(rounds):
        choose(table, rows, np.array(masks, np.uint64), rows, generators, epsilon, out[k])
    return out


def test_forced_moves_are_made_without_the_network() -> None:
    actions = np.empty(4, np.uint8)
    assert fill_forced_moves(np.array([0b1000, 0b101, 1 << 63, 0b110], np.uint64), actions).tolist() == [1, 3]
    assert actions.tolist() == [3, 0, 63, 1]


def test_greedy_choice_stays_within_the_mask() -> None:
    values = [[9.0, 1.0, 5.0], [-3.0, -1.0, -2.0], [0.0, float("-inf"), float("-inf")]]
    assert chosen(values, [0b110, 0b101, 0b100], 0.0)[0].tolist() == [2, 2, 2]


def test_exploration_share_and_its_uniformity() -> None:
    counts = np.bincount(chosen([[0.0, 5.0, 0.0, 9.0]], [0b0111], 0.3, 30_000)[:, 0], minlength=4) / 30_000
    assert counts.tolist() == pytest.approx([0.1, 0.8, 0.1, 0.0], abs=0.01)


def test_rows_that_explored_are_those_of_lesser_values() -> None:
    """Actions 0 and 2 tie for the greatest legal value, so a random choice of either is greedy; 1 never is."""
    rows, actions = np.arange(3000), np.empty(3000, np.uint8)
    table = np.tile(np.array([5.0, 1.0, 5.0, 9.0], np.float32), (rows.size, 1))
    generators, masks = stream(1, "test", 0, rows.size), np.full(rows.size, 0b0111, np.uint64)
    explored = choose(table, rows, masks, rows, generators, 1.0, actions)
    assert np.bincount(actions).min() > 900
    assert explored.tolist() == np.flatnonzero(actions == 1).tolist()
    assert choose(table, rows, masks, rows, generators, 0.0, actions).size == 0 and not actions.any()


def test_player_says_of_each_game_whether_its_action_was_greedy() -> None:
    """Also if it is asked about a subset of the games, in any order."""
    torch.manual_seed(0)
    network, seeds = DenseNetwork(GAME.bits, GAME.actions, [32], False), stream(1, "test", 0, 200)
    states, games = GAME.deal(seeds), np.arange(199, -1, -3)
    best, explorer = NetworkPlayer(network), NetworkPlayer(network, epsilon=0.5)
    best.begin(seeds)
    explorer.begin(seeds)
    decisions = Decisions(GAME, states, games)
    same = explorer.act(decisions) == best.act(decisions)
    assert 10 < same.sum() < games.size - 10
    assert np.array_equal(explorer.greedy[games], same)
    assert best.greedy.all() and np.delete(explorer.greedy, games).all()
    explorer.epsilon = 0.0
    explorer.act(decisions)
    assert explorer.greedy.all()


def test_player_acts_the_same_in_any_batch() -> None:
    torch.manual_seed(0)
    player = NetworkPlayer(DenseNetwork(GAME.bits, GAME.actions, [32], False), epsilon=0.5)
    seeds = stream(1, "test", 0, 50)
    states = GAME.deal(seeds)
    player.begin(seeds)
    together = player.act(Decisions(GAME, states, np.arange(50)))
    player.begin(seeds)
    single = [Decisions(GAME, states, np.array([game])) for game in range(49, -1, -1)]
    alone = np.concatenate([player.act(decision) for decision in single])
    assert np.array_equal(together, alone[::-1])
    legal = GAME.legal(states)
    assert ((legal >> together.astype(np.uint64)) & np.uint64(1)).all()
