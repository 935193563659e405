"""A diverging run stops with a message, and writes only finite numbers to disk."""

import math
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.train.__main__ import main
from busso.train.learner.learner import DivergedError
from busso.train.rollout.backend import LocalBackend
from busso.train.rollout.request import Rollout, RolloutRequest
from busso.train.rollout.worker import RolloutWorker
from busso.train.run import checkpoint
from busso.train.run.checkpoint import CheckpointError, not_finite
from busso.train.run.folder import RunFolder
from busso.train.run.runner import Runner
from busso.train.trainer import DqnTrainer
from tests.errors import error_about, error_line
from tests.train.defaults import learner_settings
from tests.train.learner.test_learner import filled, learner
from tests.train.runs import TrainedRuns, settings, small

CPU = torch.device("cpu")
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
    it.replay._data["n_step_return"].fill_(math.nan)
    it.update()
    assert math.isnan(it.metrics()["train/loss"])
    assert all(not_finite(weights) == "" for weights in it.inference_weights().values())
