"""Draws in proportion to priorities, and the sums that they are drawn by."""

import pytest
import torch

from busso.train.dqn.replay.priorities import BLOCK, Priorities

CPU = torch.device("cpu")
SIZES = [1, 2, 7, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3]


def uniform(count: int, seed: int = 4) -> torch.Tensor:
    return torch.rand(count, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def some_weights(count: int) -> torch.Tensor:
    return (uniform(count, 3) + 0.01).float()


@pytest.mark.parametrize("capacity", SIZES)
def test_draws_against_one_running_sum(capacity: int) -> None:
    it, weights = Priorities(capacity, CPU), some_weights(capacity)
    it.set(torch.arange(capacity), weights)
    exact = weights.double()
    assert float(it._sums.sum()) == pytest.approx(float(exact.sum()), rel=1e-12)
    edges, draws = torch.cumsum(exact, 0) / exact.sum(), uniform(500)
    places, probability = it.sample(draws, torch.tensor(capacity))
    assert torch.equal(places, torch.searchsorted(edges, draws, right=True))
    assert torch.allclose(probability, (exact / exact.sum())[places], rtol=1e-12)


def test_shares_of_many_draws() -> None:
    """Chi-square over 700 places with weights from 0.01 to 1: 699 degrees of freedom, 5 deviations of 37.4 above."""
    it, weights = Priorities(1000, CPU), some_weights(700)
    it.set(torch.arange(700), weights)
    count = 400_000
    seen = torch.bincount(it.sample(uniform(count), torch.tensor(1000))[0], minlength=1000)
    expected = count * weights.double() / weights.double().sum()
    assert not seen[700:].any()
    assert float(((seen[:700] - expected) ** 2 / expected).sum()) < 699 + 5 * (2 * 699) ** 0.5


def test_places_without_weight_are_never_drawn() -> None:
    """Neither before, between nor behind the others, in their block or in others, at either end of the draws."""
    it = Priorities(4 * BLOCK, CPU)
    some = torch.tensor([3, 10, 2 * BLOCK + 5])
    extremes = torch.tensor([0.0, 2.0**-1074, 0.5, 1 - 2**-53], dtype=torch.float64)
    for weights in ([1.0, 1.0, 1.0], [1.0, 1e-38, 1e-38], [1e-38, 1.0, 1.0], [1 / 3, 1 / 7, 1e7]):
        it.set(some, torch.tensor(weights))
        places, probability = it.sample(torch.cat([extremes, uniform(2000)]), torch.tensor(4 * BLOCK))
        assert set(places.tolist()) <= set(some.tolist()) and bool((probability > 0).all())


def test_wherever_rounding_leads_it_is_a_place_with_a_weight() -> None:
    """As if the running sums had led beyond them all."""
    it = Priorities(1000, CPU)
    it.set(torch.arange(700), some_weights(700))
    places, probability = it.sample(uniform(500), torch.tensor(400))
    assert int(places.max()) == 399 and bool((probability > 0).all())


@pytest.mark.parametrize("capacity", SIZES)
def test_filled_is_set(capacity: int) -> None:
    """To the last bit, over any stretch of places."""
    for first, end in ((0, capacity), (capacity // 3, 1 + capacity // 2), (0, 0)):
        one, two = Priorities(capacity, CPU), Priorities(capacity, CPU)
        for it in (one, two):
            it.set(torch.arange(capacity), some_weights(capacity))
        one.fill(first, end, torch.tensor(0.3))
        two.set(torch.arange(first, end), torch.tensor(0.3))
        assert torch.equal(one.weights, two.weights) and torch.equal(one._sums, two._sums)


def test_sums_do_not_drift() -> None:
    """After a million changes between tiny and huge weights the sums are those of a fresh one."""
    it, fresh = Priorities(1000, CPU), Priorities(1000, CPU)
    index = torch.arange(1000)
    for k in range(1000):
        it.set(index, some_weights(1000) * 10.0 ** (k % 30 - 15))
    it.set(index, some_weights(1000))
    fresh.set(index, some_weights(1000))
    assert torch.equal(it._sums, fresh._sums)


@pytest.mark.parametrize("capacity", SIZES)
def test_restored_ones_draw_the_same(capacity: int) -> None:
    size = max(1, capacity // 2)
    it, other = Priorities(capacity, CPU), Priorities(capacity, CPU)
    it.set(torch.arange(size), some_weights(size))
    other.set(torch.arange(capacity), some_weights(capacity))
    other.load_state_dict(it.state_dict(size))
    draws = uniform(50), torch.tensor(size)
    for a, b in zip(it.sample(*draws), other.sample(*draws), strict=True):
        assert torch.equal(a, b)
    assert torch.equal(it.weights, other.weights)
