"""Values and gradients of both networks, number formats, and the choice of an action."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional

from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.compiled.symmetry import layout
from busso.cards.play import Decisions
from busso.train.__main__ import main
from busso.train.network.build import build_network, inference_network
from busso.train.network.deviations import join, split
from busso.train.network.packed_linear import PackedLinear
from busso.train.network.q_network import (
    DenseNetwork,
    EquivariantNetwork,
    NetworkPlayer,
    choose,
    fastest_format,
    fill_forced_moves,
    learner_format,
    legal_tensor,
)
from busso.train.rollout.request import RolloutRequest
from busso.train.rollout.worker import Evaluator, RolloutWorker
from busso.tressette import GAME
from busso.tressette.cards import RANKS, SUITS
from tests.chips import Chip, emulated_chip
from tests.train.runs import settings, small


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


# Three parts with two bits each, interleaved, after three bits of no part and before one.
BITS, PARTS, ACTIONS = 70, 3, 6
SYMMETRY = layout([(63, 2, np.array([[0, 3], [1, 4], [2, 5]]))], PARTS, BITS)


def equivariant(
    network: EquivariantNetwork, weights: dict[str, Tensor], words: Tensor, first: torch.dtype, short: torch.dtype
) -> Tensor:
    """Compute the same in plain PyTorch, with loops, for autograd; formats are of the first layer and the others."""
    bits = torch.from_numpy(unpack(words.numpy().view(np.uint64), BITS)).to(first)
    none = [*range(63), 69]
    parts = []
    for part in range(PARTS):
        x = torch.cat([bits[:, [63 + part, 66 + part]], bits[:, none]], dim=1)
        parts.append((x @ weights["input.weight"].to(first) + weights["input.bias"].to(first)).relu().to(short))
    for k in range(0, len(network.body), 2):
        names = (f"body.{k}.weight", f"body.{k}.bias", f"body.{k + 1}.weight")
        own, bias, mean = (weights[name].to(short) for name in names)
        over_all = sum(parts[1:], parts[0]) / PARTS
        parts = [(functional.linear(x, own, bias) + over_all @ mean.t()).relu() for x in parts]
    features = [x.float() for x in parts]
    advantage = torch.cat([functional.linear(x, weights["head.weight"], weights["head.bias"]) for x in features], 1)
    if network.value is None:
        return advantage
    over_all = sum(features[1:], features[0]) / PARTS
    value = functional.linear(over_all, weights["value.weight"], weights["value.bias"])
    return value + advantage - advantage.mean(dim=1, keepdim=True)


@pytest.mark.parametrize("hidden", [[5], [32, 24, 28]])
@pytest.mark.parametrize("dueling", [False, True])
def test_values_and_gradients_with_shared_weights_equal_plain_pytorch(
    hidden: list[int], dueling: bool, chip: Chip
) -> None:
    torch.manual_seed(0)
    network, words = EquivariantNetwork(SYMMETRY, ACTIONS, hidden, dueling), torch.randint(-(2**62), 2**62, (100, 2))
    # Sums are rounded in another order, which flips an occasional ReLU: negligible over many rows.
    check_gradients(network, equivariant, words, getattr(torch, chip.format), 0.1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_sums_and_deviations_by_hand(dtype: torch.dtype) -> None:
    """Three parts of one row; the gradient is 0 where the ReLU's output is."""
    x = torch.tensor([[-3.0, 8.0], [3.0, -2.0], [6.0, 0.0]], dtype=dtype)
    total, rest, _ = split(x, 3)
    assert (total.tolist(), rest.tolist()) == ([[6, 6]], [[-5, 6], [1, -4]])
    assert torch.equal(join(total / 3, rest, relu=False), x) and torch.equal(join(total / 3, rest, relu=True), x.relu())
    of_out = split(x, 3, torch.tensor([[0.0, 1.0], [1.0, 1.0], [2.0, 5.0]], dtype=dtype))
    assert [each.tolist() for each in of_out] == [[[9, 6]], [[-3, 6], [0, -4]], [[-6, 8], [-3, -2]]]
    mean, rest = (torch.randn(50, 7).to(dtype) for _ in range(2))
    assert torch.equal(join(mean, rest, relu=False), torch.cat([mean + rest, mean - rest]))  # the same rounding
    assert join(torch.full_like(mean, torch.nan), rest, relu=True).isnan().all()


@pytest.mark.parametrize("dueling", [False, True])
def test_values_of_taken_actions_and_their_gradients_are_those_of_all(dueling: bool, chip: Chip) -> None:
    torch.manual_seed(0)
    network, words = EquivariantNetwork(SYMMETRY, ACTIONS, [32, 24], dueling), torch.randint(-(2**62), 2**62, (100, 2))
    network.requires_grad_().format = getattr(torch, chip.format)
    actions, of_values, found = torch.arange(100, dtype=torch.uint8) % ACTIONS, torch.randn(100), []
    for values in (network.taken(words, actions), network(words)[torch.arange(100), actions.long()]):
        network.zero_grad()
        values.backward(of_values)
        found.append([values.detach(), *(each.grad for each in network.parameters())])
    off = 0.02 if network.format == torch.bfloat16 else 1e-5
    for one, other in zip(*found, strict=True):
        assert torch.allclose(one, other, atol=off * float(other.abs().max())) and bool(other.any())


def test_renamed_suits_rename_the_values() -> None:
    torch.manual_seed(0)
    symmetry = GAME.symmetry
    assert symmetry is not None
    network = EquivariantNetwork(symmetry, GAME.actions, [32, 24], False)
    states, games = GAME.deal(stream(3, "test", 0, 50)), np.arange(50)
    for _ in range(17):
        lowest = GAME.legal(states) & -GAME.legal(states)
        GAME.loops.apply(states, games, np.log2(lowest).astype(np.uint8))
    seen = unpack(GAME.observe(states), GAME.bits).astype(bool)
    suits = [2, 3, 1, 0]
    there = {pair: bit for bit, pair in enumerate(zip(symmetry.part.tolist(), symmetry.place.tolist(), strict=True))}
    part = [suits[part] if part >= 0 else part for part in symmetry.part]
    renamed = seen[:, [there[pair] for pair in zip(part, symmetry.place.tolist(), strict=True)]]
    cards = np.concatenate([RANKS * suit + np.arange(RANKS) for suit in suits])
    values, others = (network(packed(bits)) for bits in (seen, renamed))
    assert not torch.allclose(values, others)
    assert torch.allclose(values[:, cards], others, atol=1e-5)


def packed(bits: np.ndarray) -> Tensor:
    padded = np.zeros((len(bits), 64 * GAME.words), np.uint8)
    padded[:, : bits.shape[1]] = bits
    return torch.from_numpy(np.packbits(padded, axis=1, bitorder="little").view(np.int64))


def test_fewer_inputs_than_bits() -> None:
    """A network that sees the first bits computes the same whatever the others are, by gathering and by multiplying."""
    words = torch.randint(-(2**62), 2**62, (20, 3))
    fewer = words.clone()
    fewer[:, 1] &= (1 << (BITS - 64)) - 1
    fewer[:, 2] = 0
    assert SYMMETRY.first(BITS).places == 2
    layer = EquivariantNetwork(SYMMETRY, ACTIONS, [8, 8], False).input.requires_grad_()
    for pass_ in (layer, layer.multiply):
        gradients = []
        for each in (words, fewer):
            layer.zero_grad()
            pass_(each, torch.float32).sum().backward()
            gradients.append(layer.weight.grad)
        assert gradients[0] is not None and gradients[0].any() and torch.equal(*gradients)
        assert torch.equal(pass_(words, torch.float32), pass_(fewer, torch.float32))


def test_parts_of_which_one_has_more_than_another_are_refused() -> None:
    with pytest.raises(ValueError, match="first 65 bits"):
        SYMMETRY.first(65)


def test_all_bits_of_tressette_have_one_place() -> None:
    assert GAME.symmetry is not None
    whole = GAME.symmetry.first(GAME.bits)
    assert whole.parts == SUITS and SUITS * whole.places + whole.common == GAME.bits


CPU, CUDA = torch.device("cpu"), torch.device("cuda")


def test_auto_is_the_fastest_of_the_device(chip: Chip, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("float32", "bfloat16"):
        assert learner_format(name, CPU) == learner_format(name, CUDA) == getattr(torch, name)
    assert learner_format("auto", CPU) == fastest_format(CPU) == getattr(torch, chip.format)
    for capable in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, capable=capable: capable)
        assert learner_format("auto", CUDA) == fastest_format(CUDA) == (torch.bfloat16 if capable else torch.float32)


@pytest.mark.parametrize("instructions", ["_is_avx512_bf16_supported", "_is_amx_tile_supported"])
def test_either_kind_of_instructions_makes_bfloat16_the_fastest(instructions: str) -> None:
    before = getattr(torch.cpu, instructions)
    # The inner patch must end first: undone after the chip, it would restore the emulated one for all later tests.
    with emulated_chip("float32_one_dnn"), pytest.MonkeyPatch.context() as patch:
        assert fastest_format(CPU) == torch.float32
        patch.setattr(torch.cpu, instructions, lambda: True)
        assert fastest_format(CPU) == torch.bfloat16
    assert getattr(torch.cpu, instructions) is before


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_players_use_the_format_of_their_chip_whatever_the_learner_does(
    tmp_path: Path, precision: str, chip: Chip
) -> None:
    """They get float32 weights."""
    chosen = settings(tmp_path, f"learner.precision={precision}", "evaluation.deals=2")
    weights = {name: tensor.clone() for name, tensor in build_network(GAME, chosen).state_dict().items()}
    worker = RolloutWorker(chosen, CPU)
    worker.load(1, weights)
    assert worker.play(RolloutRequest(0, 4, 0.1)).decisions == 4 * 40
    assert Evaluator(chosen, CPU).duels(weights, "evaluation", 2)["random"].wins.size == 2
    network = inference_network(GAME, chosen, CPU)
    hidden = {parameter.dtype for parameter in network.body.parameters()}
    assert hidden == {getattr(torch, chip.format)} and network.head.weight.dtype == torch.float32


def test_nothing_makes_float32_less_than_it_is(tmp_path: Path) -> None:
    """TF32, with float16's 10 bits of mantissa, would affect the output layer too."""
    assert main(small(tmp_path, "episodes=32")) == 0
    assert torch.get_float32_matmul_precision() == "highest"
