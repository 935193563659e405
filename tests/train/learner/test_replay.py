"""Replay buffer: ring, sampling, state."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from busso.base.errors import InputError
from busso.train.learner.replay_buffer import LambdaBatch, ReplayBuffer, row_bytes
from busso.train.rollout.transitions import LambdaTransitions, NStepTransitions, Transitions
from tests.errors import error_about
from tests.train.rows import lambda_rows, rows

CPU = torch.device("cpu")


def held(replay: ReplayBuffer) -> list[int]:
    return sorted(int(x) for x in replay.state_dict()["rows"]["n_step_return"])


def test_ring_overwrites_the_oldest() -> None:
    replay = ReplayBuffer(NStepTransitions, 10, 2, CPU, seed=1)
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
    """At the end of the ring, with rollouts larger than the ring, after each insertion."""
    replay, first = ReplayBuffer(NStepTransitions, capacity, 2, CPU, seed=1), 0
    end_of: dict[int, int] = {}
    for size in sizes:
        replay.add(rows(first, size))
        end_of |= dict.fromkeys(range(first, first + size), first + size)
        first += size
        if not first:
            continue
        batch = replay.rows(replay.draw(20 * capacity))
        for row in zip(*(column.tolist() for column in batch), strict=True):
            (number, _), action, _, discount, then, legal = row
            assert first - capacity <= number < first and action == number % 40
            expected = number + 1 + number % 3
            inside = expected < end_of[number]
            assert discount == (0.5 if inside else 0)
            assert then == ([expected, expected + 1000] if inside else [0, 0])
            assert legal == (expected - (1 << 63) if inside else 0)


def test_uniform_sampling_reaches_all_rows_equally() -> None:
    replay = ReplayBuffer(NStepTransitions, 8, 2, CPU, seed=1)
    replay.add(rows(0, 8))
    counts = torch.bincount(replay.rows(replay.draw(80_000)).action, minlength=8)
    assert counts.min() > 9_500 and counts.max() < 10_500


def test_empty_buffer() -> None:
    with pytest.raises(ValueError, match="empty"):
        ReplayBuffer(NStepTransitions, 8, 2, CPU, seed=1).draw(1)


@pytest.mark.parametrize(("kind", "nbytes"), [(LambdaTransitions, 64 + 5), (NStepTransitions, 64 + 21)])
def test_a_million_transitions_fit(kind: type[Transitions], nbytes: int) -> None:
    """64 bytes of packed observation, an action, and the target or the data to compute it."""
    assert ReplayBuffer(kind, 1_000_000, 8, CPU, seed=1).nbytes == 1_000_000 * row_bytes(kind, 8) == 1_000_000 * nbytes


def test_a_sample_with_targets_is_rows_as_they_are() -> None:
    replay = ReplayBuffer(LambdaTransitions, 10, 2, CPU, seed=1)
    replay.add(lambda_rows(0, 13))
    batch = replay.rows(replay.draw(100))
    assert isinstance(batch, LambdaBatch) and set(batch.returns.tolist()) == set(range(3, 13))
    for (number, second), action, target in zip(*(column.tolist() for column in batch), strict=True):
        assert second == number + 1000 and action == number and target == number


@pytest.mark.parametrize("kind", [LambdaTransitions, NStepTransitions])
def test_zeros_are_as_a_sample(kind: type[Transitions]) -> None:
    """All are separate tensors: torch.compile would assume that shared ones are the same in all batches."""
    replay = ReplayBuffer(kind, 10, 2, CPU, seed=1)
    replay.add(lambda_rows(0, 5) if kind is LambdaTransitions else rows(0, 5))
    zeros, sample = replay.zeros(3), replay.rows(replay.draw(3))
    assert type(zeros) is type(sample) and not any(column.any() for column in zeros)
    assert [(column.dtype, column.shape) for column in zeros] == [(column.dtype, column.shape) for column in sample]
    assert len({column.data_ptr() for column in zeros}) == len(zeros)


def test_state_restores_contents_and_future_samples() -> None:
    replay = ReplayBuffer(NStepTransitions, 10, 2, CPU, seed=1)
    replay.add(rows(0, 13))
    replay.draw(5)
    other = ReplayBuffer(NStepTransitions, 10, 2, CPU, seed=99)
    other.load_state_dict(replay.state_dict())
    for _ in range(3):
        a, b = replay.rows(replay.draw(32)), other.rows(other.draw(32))
        assert torch.equal(a.observation, b.observation)
        replay.add(rows(100, 3))
        other.add(rows(100, 3))
    assert held(replay) == held(other)


def test_state_of_another_shape_is_refused() -> None:
    state = ReplayBuffer(NStepTransitions, 10, 2, CPU, seed=1).state_dict()
    with error_about(InputError, "replay", "size of"):
        ReplayBuffer(NStepTransitions, 10, 3, CPU, seed=1).load_state_dict(state)


def test_rows_of_another_capacity_are_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    before, after = (
        ReplayBuffer(NStepTransitions, 10, 2, CPU, seed=1),
        ReplayBuffer(NStepTransitions, 11, 2, CPU, seed=1),
    )
    before.add(rows(0, 4))
    after.load_state_dict(before.state_dict())
    assert after.size == after.inserted == 0 and "replay.capacity was 10 and is 11" in caplog.text


def test_state_of_another_kind_of_device() -> None:
    """A CUDA generator's state has 16 bytes: the sampling restarts, deterministically."""
    state = ReplayBuffer(NStepTransitions, 4, 2, CPU, seed=1).state_dict() | {
        "generator": torch.zeros(16, dtype=torch.uint8)
    }
    samples = []
    for _ in range(2):
        replay = ReplayBuffer(NStepTransitions, 4, 2, CPU, seed=1)
        replay.load_state_dict(state)
        replay.add(rows(0, 4))
        samples.append(replay.rows(replay.draw(20)).action)
    assert torch.equal(*samples)
