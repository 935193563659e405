"""The network's kernels and the choice of an action."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from cards.bits import unpack
from cards.play import Decisions
from cards.splitmix import stream
from tests.chips import Chip, emulated_chip
from train.dqn.network import Linear, NetworkPlayer, QNetwork, choose, fill_forced_moves, legal_tensor
from train.dqn.packed_linear import PackedLinear
from tressette import GAME


def test_one_dnn_layer_equals_the_plain_one() -> None:
    torch.manual_seed(0)
    ours, plain = Linear(37, 19), torch.nn.Linear(37, 19)
    plain.load_state_dict(ours.state_dict())
    x = torch.randn(23, 37, requires_grad=True)
    y = x.detach().clone().requires_grad_()
    with emulated_chip("float32_one_dnn"):
        ours(x).square().sum().backward()
    plain(y).square().sum().backward()
    for a, b in ((x.grad, y.grad), (ours.weight.grad, plain.weight.grad), (ours.bias.grad, plain.bias.grad)):
        assert a is not None and b is not None and torch.allclose(a, b, atol=1e-4)


@given(st.lists(st.lists(st.integers(0, 2**64 - 1), min_size=3, max_size=3), min_size=1, max_size=9))
def test_packed_layer_equals_the_dense_one(rows: list[list[int]]) -> None:
    """Output and gradients, for any number of bits set."""
    torch.manual_seed(0)
    layer, bits = PackedLinear(150, 7), 150
    packed = np.array(rows, np.uint64)
    packed[:, 2] &= np.uint64((1 << (bits - 128)) - 1)
    x = torch.from_numpy(unpack(packed, bits))
    weight, bias = (p.detach().clone().requires_grad_() for p in (layer.weight, layer.bias))
    out, expected = layer(torch.from_numpy(packed.view(np.int64))), x @ weight + bias
    assert torch.allclose(out, expected, atol=1e-4)
    out.square().sum().backward()
    expected.square().sum().backward()
    assert weight.grad is not None and bias.grad is not None
    assert torch.allclose(layer.weight.grad, weight.grad, atol=1e-2, rtol=1e-3)
    assert torch.allclose(layer.bias.grad, bias.grad, atol=1e-2, rtol=1e-3)


def test_dueling_by_hand(chip: Chip) -> None:
    """Advantages enter only by their difference from the mean: the mean of Q is V."""
    network = QNetwork(6, 3, [5], dueling=True)
    x = torch.tensor([[5], [0], [63], [8]])
    features = network.body(network.input(x))
    assert network.value is not None
    expected = network.value(features) + network.head(features) - network.head(features).mean(1, keepdim=True)
    assert torch.allclose(network(x), expected)
    assert torch.allclose(network(x).mean(1, keepdim=True), network.value(features), atol=1e-6)


@given(st.lists(st.integers(0, 2**40 - 1), min_size=1, max_size=5))
def test_legal_tensor_shows_the_bits(masks: list[int]) -> None:
    shown = legal_tensor(torch.tensor(masks), 40)
    assert [[mask >> a & 1 == 1 for a in range(40)] for mask in masks] == shown.tolist()


def test_legal_tensor_of_bit_63() -> None:
    assert legal_tensor(torch.tensor([-(2**63)]), 64).nonzero().tolist() == [[0, 63]]


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
    """Actions 0 and 2 tie for the greatest legal value: whichever chance draws, it is a greedy choice; 1 never is."""
    rows, actions = np.arange(3000), np.empty(3000, np.uint8)
    table = np.tile(np.array([5.0, 1.0, 5.0, 9.0], np.float32), (rows.size, 1))
    generators, masks = stream(1, "test", 0, rows.size), np.full(rows.size, 0b0111, np.uint64)
    explored = choose(table, rows, masks, rows, generators, 1.0, actions)
    assert np.bincount(actions).min() > 900
    assert explored.tolist() == np.flatnonzero(actions == 1).tolist()
    assert choose(table, rows, masks, rows, generators, 0.0, actions).size == 0 and not actions.any()


def test_player_says_of_each_game_whether_its_action_was_greedy() -> None:
    """Also where it is asked for some of the games, in any order."""
    torch.manual_seed(0)
    network, seeds = QNetwork(GAME.bits, GAME.actions, [32], False), stream(1, "test", 0, 200)
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
    player = NetworkPlayer(QNetwork(GAME.bits, GAME.actions, [32], False), epsilon=0.5)
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
