"""Which device is computed on, and what is said where it is not the one that was hoped for."""

import logging
from pathlib import Path

import pytest
import torch

from command.settings.checks import SettingsError
from tests.errors import error_about
from train.run import device
from train.run.device import choose_device

VERSION = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  470.57.02  Tue Jul 13 16:14:05 UTC 2021\nGCC version: 9\n"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """One with a PyTorch for CUDA 12.8, whose driver, once its file is written, serves it no GPU."""
    monkeypatch.setattr(device, "_DRIVER", tmp_path / "version")
    monkeypatch.setattr(torch.version, "cuda", "12.8")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    return tmp_path / "version"


def test_a_driver_that_is_too_old_is_one_line_in_the_log(machine: Path, caplog: pytest.LogCaptureFixture) -> None:
    machine.write_text(VERSION)
    with caplog.at_level(logging.INFO, "train"):
        assert choose_device("auto") == torch.device("cpu")
    assert caplog.messages == [
        "no GPU is used: NVIDIA's driver 470.57.02 does not serve this PyTorch, which wants CUDA 12.8"
    ]
    with error_about(SettingsError, "device", "470.57.02", hint="device=cpu"):
        choose_device("cuda")


def test_a_machine_without_a_gpu_says_nothing(machine: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "train"):
        assert choose_device("auto") == torch.device("cpu") and caplog.messages == []
    with error_about(SettingsError, "device", "NVIDIA", hint="device=cpu"):
        choose_device("cuda:0")


def test_a_gpu_is_of_no_use_to_a_pytorch_without_cuda(
    machine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine.write_text(VERSION)
    monkeypatch.setattr(torch.version, "cuda", None)
    with caplog.at_level(logging.INFO, "train"):
        assert choose_device("auto") == torch.device("cpu")
    assert caplog.messages == ["no GPU is used: this PyTorch is built without CUDA"]


def test_a_gpu_that_refuses_is_left_out(
    machine: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Of another job, or of a kind that this PyTorch has no code for."""
    machine.write_text(VERSION)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)

    def refused(*shape: int, device: torch.device) -> torch.Tensor:
        raise RuntimeError("CUDA error: no kernel image is available\nCompile with TORCH_USE_CUDA_DSA")

    monkeypatch.setattr(torch, "ones", refused)
    with caplog.at_level(logging.INFO, "train"):
        assert choose_device("auto") == torch.device("cpu")
    assert caplog.messages == ["no GPU is used: CUDA error: no kernel image is available"]
    with error_about(SettingsError, "device", "there are 1", hint="device=cpu"):
        choose_device("cuda:1")


def test_what_is_no_device_is_named() -> None:
    assert choose_device("cpu") == torch.device("cpu")
    for setting in ("gpu", "mps", "cuda:x"):
        with error_about(SettingsError, "device"):
            choose_device(setting)
