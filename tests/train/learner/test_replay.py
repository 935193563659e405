"""Replay buffer: ring, sampling, state; and divergence of what is learned from it."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from busso.base.errors import InputError
from busso.train.__main__ import main
from busso.train.learner.learner import DivergedError
from busso.train.learner.replay_buffer import LambdaBatch, ReplayBuffer, row_bytes
from busso.train.rollout.backend import LocalBackend
from busso.train.rollout.request import Rollout, RolloutRequest
from busso.train.rollout.transitions import LambdaTransitions, NStepTransitions, Transitions
from busso.train.rollout.worker import RolloutWorker
from busso.train.run import checkpoint
from busso.train.run.checkpoint import CheckpointError, not_finite
from busso.train.run.folder import RunFolder
from busso.train.run.runner import Runner
from busso.train.trainer import DqnTrainer
from tests.errors import error_about, error_line
from tests.train.defaults import learner_settings
from tests.train.learner.test_learner import filled, learner
from tests.train.rows import lambda_rows, rows
from tests.train.runs import TrainedRuns, settings, small

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


@examples(max_examples=60, deadline=None)
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


def test_samples_come_from_the_newest_share_of_all_rows() -> None:
    """At least three, at most the buffer; each as often as the others."""
    replay = ReplayBuffer(NStepTransitions, 8, 2, CPU, seed=1, share=0.25, least=3)
    for first, count, newest in ((0, 5, 3), (5, 11, 4), (16, 6, 6), (22, 30, 8)):
        replay.add(rows(first, count))
        assert replay.window == newest
        found = [int(number) for number in replay.rows(replay.draw(8000)).observation[:, 0]]
        wanted = list(range(first + count - newest, first + count))
        counts = [found.count(number) for number in wanted]
        assert sum(counts) == 8000 and max(counts) - min(counts) < 2000 / newest**0.5


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


NEVER = 10**9
RARELY = {
    "log": f"log_every_episodes={NEVER}",
    "evaluation": f"evaluation.every_episodes={NEVER}",
    "checkpoint": f"checkpoint.every_episodes={NEVER}",
}


def folder(runs: Path) -> Path:
    return runs / "tressette" / "small" / "checkpoints"


def written(runs: Path) -> list[Path]:
    """Return all files with networks, after checking that each loads and is finite."""
    files = [*folder(runs).glob("*.pt")]
    for path in files:
        state = checkpoint.load(path)
        assert not_finite(state) is None and state["acting"], path
    return files


def test_a_learning_rate_that_is_far_too_great(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):  # the same command starts over and fails the same way
        assert main(small(tmp_path, "learner.lr=1e30")) == 2
        line = error_line(capsys.readouterr().err)
        assert "tressette/small: the run diverged (train/loss is " in line and "no checkpoint had been written" in line
        helps = ("learner.lr", "learner.grad_clip", "game.reward", "learner.precision=float32", "name=...")
        assert all(key in line for key in helps)
        assert written(tmp_path) == []


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> None:
    """From episode 128 on, make the return of one decision in eight NaN."""
    play = RolloutWorker.play

    def poison(worker: RolloutWorker, request: RolloutRequest) -> Rollout:
        rollout = play(worker, request)
        if request.first >= 128:
            rollout.transitions.target[::8] = math.nan
        return rollout

    monkeypatch.setattr(RolloutWorker, "play", poison)


@pytest.mark.usefixtures("poisoned")
@pytest.mark.parametrize("first", [*RARELY, "end"])
def test_whatever_comes_first_stops_it_and_writes_nothing(
    tmp_path: Path, first: str, trained_run: TrainedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    """The log row, the evaluation, the checkpoint or the end of the run; one earlier checkpoint exists."""
    trained_run("episodes=128", runs=tmp_path)
    before, row = sorted(written(tmp_path)), (folder(tmp_path).parent / "metrics.csv").read_text()
    rarely = [override for what, override in RARELY.items() if what != first]
    for _ in range(2 if first == "end" else 1):  # repeated, it resumes from the last good one and ends the same way
        capsys.readouterr()
        assert main(small(tmp_path, *(rarely if first != "end" else RARELY.values()))) == 2
        line = error_line(capsys.readouterr().err)
        assert f"the last good checkpoint is {folder(tmp_path) / 'episode_000000000128.pt'}" in line
        assert sorted(written(tmp_path)) == before
    assert "nan" not in row + (folder(tmp_path).parent / "metrics.csv").read_text()


@pytest.mark.usefixtures("poisoned")
def test_a_stop_request_writes_nothing_either(tmp_path: Path) -> None:
    """The exit code must not requeue the job."""
    chosen = settings(tmp_path, *RARELY.values())
    with RunFolder(chosen) as held:
        trainer = DqnTrainer(chosen, held, CPU, LocalBackend(chosen, CPU), {})
        with pytest.raises(DivergedError) as caught:
            Runner(trainer, held, lambda: trainer.counters.episodes >= 192).run()
    assert caught.value.exit_code not in (0, 75) and written(tmp_path) == []


def test_a_diverged_checkpoint_counts_as_damaged(
    tmp_path: Path, trained_run: TrainedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its weights, or those of an evaluation in progress, are not finite."""
    trained_run(runs=tmp_path)
    newest, before = checkpoint.listed(folder(tmp_path))[:2]
    state = checkpoint.load(newest)
    bad = {name: torch.full_like(tensor, math.nan) for name, tensor in state["acting"].items()}
    for changed in ({"evaluating": [[7, bad]]}, {"acting": bad}):
        checkpoint.save(newest, state | changed)
        with error_about(CheckpointError, newest, "not finite"):
            checkpoint.load(newest)
    best = folder(tmp_path) / checkpoint.BEST
    checkpoint.save(best, checkpoint.load(best) | {"acting": bad})
    assert main(small(tmp_path)) == 0
    assert f"{newest.name}: acting." in capsys.readouterr().err and before.exists()
    assert newest in written(tmp_path) and best in written(tmp_path)


def test_where_a_state_is_not_finite() -> None:
    state: dict[str, Any] = {"a": [torch.ones(2), {"b": torch.zeros(0)}], "c": 3, "d": torch.tensor([1, 2])}
    assert not_finite(state) is None
    for bad in (math.nan, math.inf, -math.inf):
        assert not_finite(state | {"e": (torch.ones(1), [torch.tensor([0.0, bad])])}) == "e.1.0"
    assert not_finite(torch.tensor([math.nan], dtype=torch.bfloat16), "x") == "x"


@pytest.mark.parametrize("muon", [0.0, 4.0])
def test_a_loss_that_is_no_number_is_divergence(muon: float) -> None:
    """In any weight of the network, with either optimizer."""
    it = filled(learner(learner_settings(batch_size=8, precision="float32", muon=muon)))
    it.replay.state_dict()["rows"]["n_step_return"].fill_(math.nan)
    it.update()
    assert math.isnan(it.metrics()["train/loss"])
    assert all(not_finite(weights) == "" for weights in it.inference_weights().values())
