"""Choice of the device, and the error if the requested one is not available."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from busso.command.settings.checks import SettingsError
from busso.train.doctor import report as doctor
from busso.train.run import device
from busso.train.run.device import BUILDS, choose_device
from tests.errors import error_about
from tests.train.runs import settings

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
