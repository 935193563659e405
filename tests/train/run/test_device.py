"""Choice of the device; missing or failing GPUs: one line, the last checkpoint, a restart after progress."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.doctor import report as doctor
from busso.train.learner.learner import Learner
from busso.train.run import background_writer, checkpoint, device, launches
from busso.train.run.device import BUILDS, choose_device, failure_in
from busso.train.run.launches import FILE, LEARNER_ON, add_launch, read_launches, this_hardware, this_program
from busso.train.run.launches import FILE as STARTS
from busso.train.run.signals import EXIT_REQUEUE
from busso.train.trainer import DqnTrainer
from tests.errors import error_about, key_of
from tests.train.runs import folder, settings, small

VERSION = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {}  Release Build\nGCC version: 9.4.0\n"
CU126 = "pip install torch==2.13.0+cu126 --index-url https://download.pytorch.org/whl/cu126"
OF_SLURM = ("SLURM_JOB_ID", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS", "SLURM_GPUS_ON_NODE", "CUDA_VISIBLE_DEVICES")


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Fake a machine with a driver, a build of PyTorch, and GPUs, which may fail with an error."""
    for name in OF_SLURM:
        monkeypatch.delenv(name, raising=False)

    def put(driver: str | None, cuda: str | None = "13.0", gpus: int = 0, error: str = "", job: str = "") -> None:
        if driver:
            (tmp_path / "version").write_text(VERSION.format(driver))
        monkeypatch.setattr(device, "_DRIVER", tmp_path / "version")
        monkeypatch.setattr(torch, "__version__", f"2.13.0+{'cpu' if cuda is None else 'cu130'}")
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(torch.cuda, "is_available", lambda: gpus > 0)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: gpus or 1)  # NVML also counts unusable ones
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda index: (7, 0))
        monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: "Tesla V100")
        if job:
            monkeypatch.setenv("SLURM_JOB_ID", job)
            monkeypatch.setenv("SLURM_JOB_GPUS", "0")

        def refused(*shape: int, device: torch.device) -> torch.Tensor:
            raise RuntimeError(f"CUDA error: {error}\nCompile with TORCH_USE_CUDA_DSA")

        monkeypatch.setattr(torch, "ones", refused)

    return put


# driver, CUDA of the build, GPUs, error -> problem, hint, whether another node may help
FAILURES = {
    "an old driver": ("550.54.14", "13.0", 0, "", ("550.54.14", "CUDA 13.0", "580.65.06"), CU126, False),
    "a very old driver": ("470.57.02", "12.6", 0, "", ("470.57.02", "CUDA 12.6"), "driver of 525.60.13", False),
    "an architecture": ("580.65.06", "13.0", 1, "no kernel image is available", ("V100", "sm_70"), CU126, False),
    "exclusive mode": ("580.65.06", "13.0", 1, "device(s) is/are busy or unavailable", ("exclusive",), "cuda:N", True),
    "no memory": ("580.65.06", "13.0", 1, "out of memory", ("too little free memory",), "nvidia-smi", True),
    "anything else": ("580.65.06", "13.0", 1, "unknown error", ("CUDA error: unknown error",), "device=cpu", True),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_gpu_that_fails_is_one_line_with_the_way_out(
    machine: Callable[..., None], failure: str, tmp_path: Path
) -> None:
    """On a workstation, in a job, and in doctor; `device=cpu` does not look for a GPU."""
    driver, cuda, gpus, error, says, way_out, elsewhere = FAILURES[failure]
    for job in ("", "7"):
        machine(driver, cuda, gpus, error, job)
        for setting in ("auto", "cuda"):
            with error_about(SettingsError, "device", says[0], way_out) as caught:
                choose_device(setting)
            assert all(each in str(caught.value) and "device=cpu" in str(caught.value) for each in says)
            assert ("--exclude" in str(caught.value)) == (elsewhere and job == "7")
        (line,) = [each for each in doctor.examine(settings(tmp_path, "device=auto")) if each.verdict == "error"]
        assert line.what == "device" and all(each in line.says for each in (*says, way_out))
    assert choose_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize(
    ("driver", "cuda", "of_gpus"),
    [(None, "13.0", "driver is not loaded"), ("580.65.06", "13.0", "sees no GPU"), ("550.54.14", None, CU126)],
)
def test_without_a_gpu_the_cpu_computes_unless_slurm_gave_one(
    machine: Callable[..., None], driver: str | None, cuda: str | None, of_gpus: str
) -> None:
    """The last case is PyTorch without CUDA: intended on a workstation, a mistake in a job with a GPU."""
    machine(driver, cuda)
    assert choose_device("auto") == torch.device("cpu")
    with error_about(SettingsError, "device", "cuda:0", "device=cpu"):
        choose_device("cuda:0")
    machine(driver, cuda, job="7")
    with error_about(SettingsError, "device", "this job was given a GPU") as caught:
        choose_device("auto")
    assert of_gpus in str(caught.value)


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
def test_a_job_without_a_gpu_trains(
    machine: Callable[..., None], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]
) -> None:
    """Including one whose GPUs were hidden on purpose."""
    machine("580.65.06")
    for name, value in {"SLURM_JOB_ID": "7", **variables}.items():
        monkeypatch.setenv(name, value)
    assert choose_device("auto").type == "cpu"


def test_a_number_without_a_gpu(machine: Callable[..., None]) -> None:
    machine("580.65.06", "13.0", 2)
    with error_about(SettingsError, "device", "has 2", hint="device=cuda:1"):
        choose_device("cuda:2")


def test_what_is_no_device_is_named() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    for setting in ("gpu", "mps", "cuda:x", "cuda:1000"):
        with error_about(SettingsError, "device"):
            choose_device(setting)


def test_the_documented_builds_are_those_that_are_advised() -> None:
    text = (Path(__file__).parents[3] / "docs" / "howto" / "cluster_install.md").read_text()
    rows = re.findall(r"^\| (\S+) or later \|.*\| `(cu\d+)` \| (\d+\.\d+) to (\d+\.\d+) ", text, re.MULTILINE)
    assert rows == [
        (each.driver, each.name, *(f"{major}.{minor}" for major, minor in (each.oldest, each.newest)))
        for each in BUILDS
    ]


@pytest.mark.gpu
def test_products_of_float32_are_float32_whatever_a_container_sets() -> None:
    torch.set_float32_matmul_precision("high")  # like TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1
    try:
        choose_device("cuda")
        assert torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision("highest")


QUICK = ("network.hidden=[8]", "evaluation.every_episodes=1000", "checkpoint.every_episodes=64")
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


def test_starts_are_added_in_their_order(tmp_path: Path) -> None:
    add_launch(tmp_path, "first", "id")
    add_launch(tmp_path, "second", "id")
    found = read_launches(tmp_path)
    assert [start["learner"] for start in found] == ["first", "second"]
    assert found[1]["machine"] == this_hardware() and found[1]["machine"]["cpus"] >= 1
    assert this_program().items() <= found[0].items() and not list(tmp_path.glob("*.tmp"))


def test_a_repository_around_an_installed_program_is_not_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "launches.py").write_text("")
    for arguments in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "theirs"]):
        subprocess.run([*git, *arguments], check=True)
    monkeypatch.setattr(launches, "__file__", str(tmp_path / ".venv" / "launches.py"))
    assert launches.commit() is None
    subprocess.run([*git, "add", "."], check=True)
    assert len(launches.commit() or "") == 40


def test_another_owners_clone_is_recorded_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git by itself refuses it as of dubious ownership. Without git, nothing is claimed."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b"]
    file = tmp_path / "launches.py"
    file.write_text("")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        subprocess.run([*git, *arguments], check=True)
    monkeypatch.setattr(launches, "__file__", str(file))
    monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
    assert subprocess.run([*git, "rev-parse", "HEAD"], check=False, capture_output=True).returncode != 0
    found = launches.this_program()
    assert len(found["commit"] or "") == 40 and found["changed"] is False
    file.write_text("changed")
    assert launches.this_program()["changed"] is True
    monkeypatch.setenv("PATH", "")
    assert launches.this_program().items() >= {"commit": None, "changed": None}.items()


def test_a_damaged_file_is_begun_anew(tmp_path: Path) -> None:
    for content in ("{", "3", '"text"', '[1, {"learner": "kept", "run": "id"}]'):
        (tmp_path / FILE).write_text(content)
        add_launch(tmp_path, "new", "id")
        found = json.loads((tmp_path / FILE).read_text())
        assert found[-1]["learner"] == "new" and all(isinstance(start, dict) for start in found)
    assert [start["learner"] for start in read_launches(tmp_path)] == ["kept", "new"]
