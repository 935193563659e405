"""The ring, its sampling, and its state."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from busso.cards.base.errors import InputError
from busso.train.dqn.replay.buffer import ReplayBuffer
from tests.errors import error_about
from tests.train.rows import rows
from tests.train.runs import whole

CPU = torch.device("cpu")


def held(replay: ReplayBuffer) -> list[int]:
    return sorted(int(x) for x in whole(replay.state_dict()["rows"])[3])


def test_ring_overwrites_the_oldest() -> None:
    replay = ReplayBuffer(10, 2, CPU, seed=1)
    replay.add(rows(0, 7))
    assert held(replay) == list(range(7))
    replay.add(rows(7, 7))
    assert held(replay) == list(range(4, 14)) and replay.size == 10 and replay.inserted == 14
    replay.add(rows(14, 25))
    assert held(replay) == list(range(29, 39)) and replay.inserted == 39
    replay.add(rows(39, 3))
    assert held(replay) == list(range(32, 42))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.lists(st.integers(0, 30), min_size=1, max_size=12))
def test_no_sample_joins_what_does_not_belong_together(capacity: int, sizes: list[int]) -> None:
    """Around the end of the ring, of rollouts larger than the whole ring, after each of them."""
    replay, first = ReplayBuffer(capacity, 2, CPU, seed=1), 0
    end_of: dict[int, int] = {}
    for size in sizes:
        replay.add(rows(first, size))
        end_of |= dict.fromkeys(range(first, first + size), first + size)
        first += size
        if not first:
            continue
        batch = replay.sample(20 * capacity).batch
        for row in zip(*(column.tolist() for column in batch), strict=True):
            (number, _), action, _, discount, then, legal = row
            assert first - capacity <= number < first and action == number % 40
            expected = number + 1 + number % 3
            inside = expected < end_of[number]
            assert discount == (0.5 if inside else 0)
            assert then == ([expected, expected + 1000] if inside else [0, 0])
            assert legal == (expected - (1 << 63) if inside else 0)


def test_uniform_sampling_reaches_all_rows_equally() -> None:
    replay = ReplayBuffer(8, 2, CPU, seed=1)
    replay.add(rows(0, 8))
    counts = torch.bincount(replay.sample(80_000).rows, minlength=8)
    assert counts.min() > 9_500 and counts.max() < 10_500


def test_empty_buffer() -> None:
    with pytest.raises(ValueError, match="empty"):
        ReplayBuffer(8, 2, CPU, seed=1).sample(1)


def test_a_million_transitions_fit() -> None:
    """64 bytes of packed observation, and 21 of all else."""
    assert ReplayBuffer(1_000_000, 8, CPU, seed=1).nbytes == 85_000_000


def test_bootstraps_only_when_a_discount_is_not_zero() -> None:
    replay = ReplayBuffer(8, 2, CPU, seed=1)
    replay.add(rows(0, 4, discount=0.0))
    assert not replay.bootstraps
    replay.add(rows(0, 4))
    assert replay.bootstraps


@pytest.mark.parametrize("alpha", [0.0, 0.6])
def test_state_restores_contents_and_future_samples(alpha: float) -> None:
    replay = ReplayBuffer(10, 2, CPU, seed=1, alpha=alpha)
    replay.add(rows(0, 13))
    replay.set_priorities(torch.arange(10), torch.linspace(0, 1, 10))
    replay.sample(5)
    other = ReplayBuffer(10, 2, CPU, seed=99, alpha=alpha)
    other.load_state_dict(replay.state_dict())
    for _ in range(3):
        a, b = replay.sample(32), other.sample(32)
        assert torch.equal(a.rows, b.rows) and torch.equal(a.batch.observation, b.batch.observation)
        replay.add(rows(100, 3))
        other.add(rows(100, 3))
    assert held(replay) == held(other)


def test_state_of_another_shape_is_refused() -> None:
    state = ReplayBuffer(10, 2, CPU, seed=1).state_dict()
    with error_about(InputError, "replay", "another size"):
        ReplayBuffer(10, 3, CPU, seed=1).load_state_dict(state)
    with error_about(InputError, "replay", "other replay settings"):
        ReplayBuffer(10, 2, CPU, seed=1, alpha=0.6).load_state_dict(state)


def test_rows_of_another_capacity_are_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    before, after = ReplayBuffer(10, 2, CPU, seed=1), ReplayBuffer(11, 2, CPU, seed=1)
    before.add(rows(0, 4))
    after.load_state_dict(before.state_dict())
    assert after.size == after.inserted == 0 and "replay.capacity was 10 and is 11" in caplog.text


def test_prioritised_by_hand() -> None:
    """Priorities 1, 2, 3, 4 with alpha 1: shares 0.1 to 0.4; weights (4 p) ** -beta over their greatest."""
    replay = ReplayBuffer(4, 2, CPU, seed=1, alpha=1.0, beta=0.5)
    replay.add(rows(0, 4))
    replay.set_priorities(torch.arange(4), torch.tensor([1.0, -2.0, 3.0, 4.0]))
    sample = replay.sample(100_000)
    shares = torch.bincount(sample.rows, minlength=4) / 100_000
    assert shares.tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.01)
    assert sample.weight is not None
    expected = torch.tensor([1.0, (1 / 2) ** 0.5, (1 / 3) ** 0.5, (1 / 4) ** 0.5])
    assert torch.allclose(sample.weight, expected[sample.rows], atol=1e-5)


def test_overflow_does_not_poison_the_priorities() -> None:
    replay = ReplayBuffer(4, 2, CPU, seed=1, alpha=0.6)
    replay.add(rows(0, 4))
    replay.set_priorities(torch.arange(4), torch.tensor([torch.inf, torch.nan, 1.0, 1.0]))
    sample = replay.sample(1000)
    assert {2, 3} <= set(sample.rows.tolist())
    assert sample.weight is not None and bool(sample.weight.isfinite().all())


def test_state_of_another_kind_of_device() -> None:
    """A CUDA generator's state has 16 bytes: the draws start anew, and always in the same way."""
    state = ReplayBuffer(4, 2, CPU, seed=1).state_dict() | {"generator": torch.zeros(16, dtype=torch.uint8)}
    samples = []
    for _ in range(2):
        replay = ReplayBuffer(4, 2, CPU, seed=1)
        replay.load_state_dict(state)
        replay.add(rows(0, 4))
        samples.append(replay.sample(20).rows)
    assert torch.equal(*samples)


def test_new_rows_get_the_greatest_priority() -> None:
    replay = ReplayBuffer(4, 2, CPU, seed=1, alpha=1.0)
    replay.add(rows(0, 2))
    replay.set_priorities(torch.tensor([0, 1]), torch.tensor([5.0, 0.0]))
    replay.add(rows(2, 1))
    assert torch.bincount(replay.sample(10_000).rows, minlength=3)[2] == pytest.approx(5_000, rel=0.1)


def test_an_outlier_does_not_give_new_rows_its_priority_for_ever() -> None:
    """After |TD error| 100 and three updates of 1: 100 * 0.99 ** 3. After 500 more, 0.64 would be left: 1 is more."""
    replay, first = ReplayBuffer(8, 2, CPU, seed=1, alpha=1.0), torch.tensor([0])
    replay.add(rows(0, 1))
    replay.set_priorities(first, torch.tensor([-100.0]))
    for _ in range(3):
        replay.set_priorities(first, torch.tensor([1.0]))
    replay.add(rows(1, 1))
    assert replay.state_dict()["priorities"]["weights"].tolist() == pytest.approx([1, 97.0299], rel=1e-5)
    for _ in range(500):
        replay.set_priorities(first, torch.tensor([1.0]))
    replay.add(rows(2, 1))
    assert replay.state_dict()["priorities"]["weights"].tolist() == pytest.approx([1, 97.0299, 1], rel=1e-5)


def test_weights_follow_beta() -> None:
    """Two rows of probabilities 0.25 and 0.75: weights are 1 and sqrt(1 / 3) at beta 0.5, 1 and 1 / 3 at beta 1."""
    replay = ReplayBuffer(2, 2, CPU, seed=1, alpha=1.0, beta=0.5)
    replay.add(rows(0, 2))
    replay.set_priorities(torch.arange(2), torch.tensor([1.0, 3.0]))
    for beta, less in ((0.5, 3**-0.5), (1.0, 1 / 3)):
        replay.beta = beta
        sample = replay.sample(1000)
        assert sample.weight is not None
        assert torch.allclose(sample.weight, torch.tensor([1.0, less])[sample.rows], atol=1e-5)
