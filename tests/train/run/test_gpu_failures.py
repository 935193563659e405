"""Missing or failing GPU: one line, the last checkpoint, and a restart if this start made progress."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.base.errors import EXIT_REQUEUE
from busso.train.__main__ import main
from busso.train.learner.learner import Learner
from busso.train.run import background_writer, checkpoint
from busso.train.run.device import failure_in
from busso.train.run.launches import FILE as STARTS
from busso.train.run.launches import LEARNER_ON
from busso.train.trainer import DqnTrainer
from tests.errors import key_of
from tests.train.runs import folder, small

QUICK = ("network.hidden=[8]", "evaluation.every_episodes=1000", "checkpoint.every_episodes=64")
OF_SLURM = ("SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE", "CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID")
ILLEGAL = "CUDA error: an illegal memory access was encountered\nCUDA kernel errors might be reported later"


@pytest.fixture(autouse=True)
def _no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in OF_SLURM:
        monkeypatch.delenv(name, raising=False)


def train(runs: Path, *more: str) -> int:
    return main(small(runs, *QUICK, *more))


def episodes(runs: Path) -> list[int]:
    return sorted(int(path.stem[-12:]) for path in checkpoint.listed(folder(runs) / "checkpoints"))


def test_a_job_with_a_gpu_does_not_train_on_a_cpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run that could not begin does not lock the folder for others."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    for name in ("SLURM_JOB_ID", "SLURM_GPUS_ON_NODE"):
        monkeypatch.setenv(name, "1")
    assert train(tmp_path) == 2
    said = capsys.readouterr().err
    assert key_of(said) == "device" and "device=cpu" in said
    assert episodes(tmp_path) == [] and not (folder(tmp_path) / "config.yaml").exists()
    assert not (folder(tmp_path) / STARTS).exists()


def test_a_run_that_began_on_a_gpu_does_not_go_on_on_a_cpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert train(tmp_path, "episodes=32") == 0
    starts = json.loads((folder(tmp_path) / STARTS).read_text())
    assert starts[0]["learner"].startswith(LEARNER_ON + "CPU in")
    starts[0]["learner"] = LEARNER_ON + "NVIDIA L40 in bfloat16"
    (folder(tmp_path) / STARTS).write_text(json.dumps(starts))
    before = {path: path.read_bytes() for path in folder(tmp_path).glob("*") if path.is_file()}
    capsys.readouterr()
    assert train(tmp_path, "episodes=64") == 2
    said = capsys.readouterr().err
    assert "this run began on a GPU" in said and "device=cpu" in said and episodes(tmp_path) == [32]
    changed = {path.name for path, content in before.items() if path.read_bytes() != content}
    assert changed <= {"train.log", ".lock"}  # with the token of the latest owner
    assert train(tmp_path, "episodes=64", "device=cpu") == 0 and episodes(tmp_path) == [32, 64]


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the GPU fail at an update after a number of episodes; from then on nothing can be copied from it."""
    real, states = Learner.update, DqnTrainer.state_dict

    def put(after: int, error: Exception) -> None:
        gone = [False]

        def update(learner: Learner) -> None:
            if learner.updates >= after:
                gone[0] = True
                raise error
            real(learner)

        def state_dict(trainer: DqnTrainer) -> dict[str, Any]:
            assert not gone[0], "a context that has failed is asked for a checkpoint"
            return states(trainer)

        monkeypatch.setattr(Learner, "update", update)
        monkeypatch.setattr(DqnTrainer, "state_dict", state_dict)

    return put


@pytest.mark.parametrize(
    ("error", "of_gpu"),
    [
        (RuntimeError(ILLEGAL), True),
        (RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"), True),
        (RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered"), True),
        (torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"), False),
        (RuntimeError("CUDA error: out of memory"), False),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), False),
        (RuntimeError("mat1 and mat2 shapes cannot be multiplied"), False),
    ],
)
def test_what_is_a_failure_of_a_gpu(error: Exception, of_gpu: bool) -> None:
    """Lack of memory is a matter of settings."""
    assert failure_in(error) is (error if of_gpu else None)


def test_after_an_error_of_the_gpu_the_last_checkpoint_stands(
    tmp_path: Path, fails: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    error = RuntimeError(ILLEGAL)
    fails(20, error)
    assert train(tmp_path) == EXIT_REQUEUE
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1 and key_of(said[0] + "\n") == "device" and str(error).splitlines()[0] in said[0]
    (last,) = checkpoint.listed(folder(tmp_path) / "checkpoints")
    assert last.name in said[0] and checkpoint.load(last)["learner"]["updates"] <= 20
    assert "Traceback" in (folder(tmp_path) / "train.log").read_text()


def test_a_start_without_a_checkpoint_of_its_own_is_not_made_again(tmp_path: Path, fails: Callable[..., None]) -> None:
    """Neither the first start of a run nor one that resumes, so that a job cannot fail forever."""
    fails(0, RuntimeError(ILLEGAL))
    assert train(tmp_path) == 1 and episodes(tmp_path) == []
    fails(20, RuntimeError(ILLEGAL))
    assert train(tmp_path) == EXIT_REQUEUE
    (first,) = episodes(tmp_path)
    assert train(tmp_path) == 1 and episodes(tmp_path) == [first]


def test_an_error_of_the_gpu_that_a_save_meets_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copying a checkpoint reads from the GPU."""
    copied = background_writer.copied

    def read(state: Any, into: Any = None) -> Any:
        if isinstance(state, dict) and state.get("counters", {}).get("episodes", 0) > 64:
            raise RuntimeError(ILLEGAL)
        return copied(state, into)

    monkeypatch.setattr(background_writer, "copied", read)
    assert train(tmp_path) == EXIT_REQUEUE
    said = capsys.readouterr().err
    assert "illegal memory access" in said and episodes(tmp_path) == [64]
