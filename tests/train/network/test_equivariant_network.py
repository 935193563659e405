"""Networks of games with symmetric parts, and networks that see fewer bits than an observation has."""

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.compiled.symmetry import layout
from busso.train.network.q_network import EquivariantNetwork
from busso.tressette import GAME
from busso.tressette.cards import RANKS, SUITS
from tests.chips import Chip
from tests.train.network.test_network import check_gradients

# Three parts with two bits each, interleaved, after three bits of no part and before one.
BITS, PARTS, ACTIONS = 70, 3, 6
SYMMETRY = layout([(63, 2, np.array([[0, 3], [1, 4], [2, 5]]))], PARTS, BITS)


def reference(
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
def test_values_and_gradients_equal_plain_pytorch(hidden: list[int], dueling: bool, chip: Chip) -> None:
    torch.manual_seed(0)
    network, words = EquivariantNetwork(SYMMETRY, ACTIONS, hidden, dueling), torch.randint(-(2**62), 2**62, (100, 2))
    # Sums are rounded in another order, which flips an occasional ReLU: negligible over many rows.
    check_gradients(network, reference, words, getattr(torch, chip.format), 0.1)


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
