"""A GPU that is not there, or fails: one line, the last checkpoint, and another node, but not for ever."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.errors import key_of
from tests.train.runs import folder, small
from train.__main__ import main
from train.dqn import self_check
from train.dqn.kernels import operators
from train.dqn.learner.learner import Learner
from train.dqn.trainer import DqnTrainer
from train.run import gpu_failures
from train.run.checkpoint import checkpoint
from train.run.folder import RunFolder
from train.run.gpu_failures import failure_in
from train.run.launches import FILE as STARTS
from train.run.signals import EXIT_REQUEUE
from train.settings.dqn import TrainSettings

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


# ---------------------------------------------------------------------- a GPU that is not there


@pytest.fixture
def job(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Put this process into a job of Slurm, with a PyTorch for CUDA that finds no GPU."""
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)

    def put(number: str = "7", **variables: str) -> None:
        monkeypatch.setenv("SLURM_JOB_ID", number)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return put


@pytest.mark.parametrize("name", OF_SLURM[:4])
def test_a_job_with_a_gpu_does_not_train_on_a_cpu(
    tmp_path: Path, name: str, job: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    job(**{name: "1" if name == "SLURM_GPUS_ON_NODE" else "0"})  # how many, or which
    assert train(tmp_path) == EXIT_REQUEUE
    said = capsys.readouterr().err
    assert key_of(said) == "device" and "device=cpu" in said and "--exclude" in said
    assert episodes(tmp_path) == [] and not (folder(tmp_path) / "config.yaml").exists()
    assert not (folder(tmp_path) / STARTS).exists()
    assert train(tmp_path, "device=cpu", "episodes=32") == 0


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"SLURM_GPUS_ON_NODE": "0"},
        {"CUDA_VISIBLE_DEVICES": "NoDevFiles"},
        {"SLURM_JOB_GPUS": "0", "CUDA_VISIBLE_DEVICES": ""},
        {"SLURM_JOB_GPUS": "0", "CUDA_VISIBLE_DEVICES": "-1"},
    ],
)
def test_a_job_without_a_gpu_trains(tmp_path: Path, job: Callable[..., None], variables: dict[str, str]) -> None:
    """Or one whose GPUs were hidden on purpose."""
    job(**variables)
    assert gpu_failures.device_of_run("auto", tmp_path).type == "cpu"


def test_a_run_that_began_on_a_gpu_does_not_go_on_on_a_cpu(
    tmp_path: Path, job: Callable[..., None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert train(tmp_path, "episodes=64") == 0
    starts = json.loads((folder(tmp_path) / STARTS).read_text())
    assert starts[0]["learner"].startswith(gpu_failures.LEARNER_ON + "CPU in")
    starts[0]["learner"] = gpu_failures.LEARNER_ON + "NVIDIA L40 in bfloat16"
    (folder(tmp_path) / STARTS).write_text(json.dumps(starts))
    before = {path: path.read_bytes() for path in folder(tmp_path).glob("*") if path.is_file()}
    for cuda, code in ((None, 1), ("12.8", EXIT_REQUEUE)):  # without CUDA no other node would help
        monkeypatch.setattr(torch.version, "cuda", cuda)
        capsys.readouterr()
        assert train(tmp_path, "episodes=128") == code
        assert "device=cpu" in capsys.readouterr().err and episodes(tmp_path) == [64]
        changed = {path.name for path, content in before.items() if path.read_bytes() != content}
        assert changed <= {"train.log", ".lock"}  # which has the token of the newest owner
    assert train(tmp_path, "episodes=128", "device=cpu") == 0 and episodes(tmp_path) == [64, 128]


def test_the_gpu_of_a_start_without_checkpoint_binds_none(tmp_path: Path, job: Callable[..., None]) -> None:
    (tmp_path / STARTS).write_text(json.dumps([{"learner": gpu_failures.LEARNER_ON + "NVIDIA L40 in bfloat16"}]))
    assert gpu_failures.device_of_run("auto", tmp_path).type == "cpu"


def test_a_job_that_finds_no_gpu_twice_is_not_requeued(tmp_path: Path, job: Callable[..., None]) -> None:
    job(SLURM_JOB_GPUS="0")
    assert [train(tmp_path) for _ in range(3)] == [EXIT_REQUEUE, 1, 1]
    job("8")  # submitted anew
    assert [train(tmp_path) for _ in range(2)] == [EXIT_REQUEUE, 1]
    assert train(tmp_path, "device=cpu", "episodes=64") == 0  # got on
    assert train(tmp_path, "episodes=128") == EXIT_REQUEUE


# ---------------------------------------------------------------------- a GPU that fails


class AcceleratorError(RuntimeError):
    """As PyTorch names it since 2.8."""


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let the GPU fail at an update after so many episodes; from then on nothing can be copied from it."""
    real, states = Learner.update_many, DqnTrainer.state_dict

    def put(after: int, error: Exception) -> None:
        gone = [False]

        def update(learner: Learner, count: int) -> Any:
            if learner.updates >= after:
                gone[0] = True
                raise error
            return real(learner, count)

        def state_dict(trainer: DqnTrainer) -> dict[str, Any]:
            assert not gone[0], "a context that has failed is asked for a checkpoint"
            return states(trainer)

        monkeypatch.setattr(Learner, "update_many", update)
        monkeypatch.setattr(DqnTrainer, "state_dict", state_dict)

    return put


@pytest.mark.parametrize(
    "error",
    [
        RuntimeError(ILLEGAL),
        AcceleratorError("CUDA error: uncorrectable ECC error encountered"),
        RuntimeError("cuDNN error: CUDNN_STATUS_EXECUTION_FAILED"),
        Exception("[719] Call to cuMemcpyDtoH results in CUDA_ERROR_LAUNCH_FAILED"),  # of Numba
    ],
)
def test_what_is_a_failure_of_a_gpu(error: Exception) -> None:
    assert failure_in(error) is error


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


def test_two_failures_without_a_checkpoint_between_them_end_the_job(
    tmp_path: Path, fails: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    fails(20, RuntimeError(ILLEGAL))
    assert train(tmp_path) == EXIT_REQUEUE
    (first,) = episodes(tmp_path)
    fails(45, RuntimeError(ILLEGAL))  # on another node it got on
    assert train(tmp_path) == EXIT_REQUEUE and episodes(tmp_path)[-1] > first
    capsys.readouterr()
    assert train(tmp_path) == 1
    assert "2 times in a row" in capsys.readouterr().err


def test_an_error_of_the_gpu_that_a_save_meets_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Columns of the buffer are read from the GPU by the thread that writes them."""
    save = RunFolder.save_checkpoint

    def read(folder: RunFolder, done: int, *rest: Any) -> Future[None]:
        if done <= 64:
            return save(folder, done, *rest)
        try:
            raise RuntimeError(ILLEGAL)
        except RuntimeError as error:
            raise checkpoint.CheckpointError(folder.path, f"could not be written ({error})", "free space") from error

    monkeypatch.setattr(RunFolder, "save_checkpoint", read)
    assert train(tmp_path) == EXIT_REQUEUE
    said = capsys.readouterr().err
    assert "illegal memory access" in said and "free space" not in said and episodes(tmp_path) == [64]


@pytest.mark.parametrize(
    "error",
    [
        torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"),
        RuntimeError("CUresult.CUDA_ERROR_OUT_OF_MEMORY"),
        RuntimeError("mat1 and mat2 shapes cannot be multiplied"),
    ],
)
def test_what_is_no_failure_of_a_gpu(error: Exception) -> None:
    """Want of memory is one of settings."""
    assert failure_in(error) is None


def test_the_first_error_is_the_one_that_is_told() -> None:
    with pytest.raises(ValueError, match="third") as caught:
        try:
            try:
                raise RuntimeError("CUDA error: first")
            except RuntimeError:
                raise RuntimeError("CUDA error: second") from None
        except RuntimeError as error:
            raise ValueError("third") from error
    assert str(failure_in(caught.value)) == "CUDA error: first"


def test_the_folder_that_cannot_keep_count_is_no_reason_to_go_round_for_ever(tmp_path: Path) -> None:
    (tmp_path / gpu_failures.FILE).mkdir()
    assert gpu_failures.failures_in_a_row(tmp_path) == gpu_failures.MOST
    assert list((tmp_path / gpu_failures.FILE).iterdir()) == []


@pytest.mark.gpu
def test_after_a_failure_the_next_start_uses_pytorchs_own_operations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A kernel of ours that ends a GPU's context ends the process: the run is not to end with it for good."""

    def check(settings: TrainSettings, device: torch.device) -> tuple[TrainSettings, list[self_check.Check]]:
        if operators.by_kernels(device):
            raise RuntimeError(ILLEGAL)
        return settings, []

    monkeypatch.setattr(self_check, "self_check", check)
    monkeypatch.setattr(operators, "_switched_off", False)
    on_gpu = ("device=cuda", "rollout=local", "episodes=32")
    assert train(tmp_path, *on_gpu) == EXIT_REQUEUE and episodes(tmp_path) == []
    assert "illegal memory access" in capsys.readouterr().err
    assert train(tmp_path, *on_gpu) == 0 and episodes(tmp_path) == [32]
    assert "(the GPU failed in the last start)" in (folder(tmp_path) / "train.log").read_text()
