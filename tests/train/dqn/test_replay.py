"""The ring, its sampling, and its state."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from busso.cards.base.errors import InputError
from busso.train.dqn.replay.buffer import ReplayBuffer
from tests.errors import error_about
from tests.train.rows import rows

CPU = torch.device("cpu")


def held(replay: ReplayBuffer) -> list[int]:
    return sorted(int(x) for x in replay.state_dict()["rows"]["n_step_return"])


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
        batch = replay.sample(20 * capacity)
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
    counts = torch.bincount(replay.sample(80_000).action, minlength=8)
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


def test_state_restores_contents_and_future_samples() -> None:
    replay = ReplayBuffer(10, 2, CPU, seed=1)
    replay.add(rows(0, 13))
    replay.sample(5)
    other = ReplayBuffer(10, 2, CPU, seed=99)
    other.load_state_dict(replay.state_dict())
    for _ in range(3):
        a, b = replay.sample(32), other.sample(32)
        assert torch.equal(a.observation, b.observation)
        replay.add(rows(100, 3))
        other.add(rows(100, 3))
    assert held(replay) == held(other)


def test_state_of_another_shape_is_refused() -> None:
    state = ReplayBuffer(10, 2, CPU, seed=1).state_dict()
    with error_about(InputError, "replay", "another size"):
        ReplayBuffer(10, 3, CPU, seed=1).load_state_dict(state)


def test_rows_of_another_capacity_are_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    before, after = ReplayBuffer(10, 2, CPU, seed=1), ReplayBuffer(11, 2, CPU, seed=1)
    before.add(rows(0, 4))
    after.load_state_dict(before.state_dict())
    assert after.size == after.inserted == 0 and "replay.capacity was 10 and is 11" in caplog.text


def test_state_of_another_kind_of_device() -> None:
    """A CUDA generator's state has 16 bytes: the draws start anew, and always in the same way."""
    state = ReplayBuffer(4, 2, CPU, seed=1).state_dict() | {"generator": torch.zeros(16, dtype=torch.uint8)}
    samples = []
    for _ in range(2):
        replay = ReplayBuffer(4, 2, CPU, seed=1)
        replay.load_state_dict(state)
        replay.add(rows(0, 4))
        samples.append(replay.sample(20).action)
    assert torch.equal(*samples)
