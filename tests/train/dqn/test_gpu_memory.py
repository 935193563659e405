"""Whether a run fits into a GPU is said before it begins, with the key to lower."""

from pathlib import Path

import pytest
import torch

from command.settings.checks import SettingsError
from tests.errors import error_about
from tests.train.runs import settings
from train.api import look_at_gpus
from train.doctor.gpu_memory import GB, block_bytes, buffer_bytes, check_gpu_memory
from train.run.device import other_gpus
from train.settings.dqn import TrainSettings

THREADS = ("rollout=threads", "rollout.games=16384", "rollout.actor_threads=4")


def buffer(tmp_path: Path, capacity: int, *overrides: str) -> TrainSettings:
    return settings(tmp_path, *THREADS, f"replay.capacity={capacity}", *overrides)


def test_a_buffer_that_is_too_large_is_told_what_would_fit(tmp_path: Path) -> None:
    large = buffer(tmp_path, 600_000_000)
    with error_about(SettingsError, "replay.capacity", "48.0 GB", hint="replay.capacity=") as caught:
        check_gpu_memory(large, 48 * GB, "cuda:0")
    says = str(caught.value)
    fits = int(says.rpartition("replay.capacity=")[2])
    assert 10_000_000 < fits < 600_000_000 and set(str(fits)[2:]) == {"0"} and "\n" not in says
    check_gpu_memory(buffer(tmp_path, fits), 48 * GB, "cuda:0")
    more = buffer_bytes(large.load_game(), large)
    assert fits * more < 48 * GB < fits * more * 1.3


def test_priorities_take_room_too(tmp_path: Path) -> None:
    one, other = buffer(tmp_path, 1000), buffer(tmp_path, 1000, "replay.prioritised=true")
    assert buffer_bytes(other.load_game(), other) >= buffer_bytes(one.load_game(), one) + 4


def test_blocks_that_are_too_large(tmp_path: Path) -> None:
    chosen = buffer(tmp_path, 1000, "rollout.actor_threads=60")
    assert 60 * block_bytes(chosen.load_game(), chosen) > 4 * GB
    with error_about(SettingsError, "rollout.games or rollout.actor_threads", hint="lower it"):
        check_gpu_memory(chosen, 4 * GB, "cuda:1")
    with error_about(SettingsError, "learner.batch_size"):
        check_gpu_memory(settings(tmp_path, "learner.batch_size=1000000"), 2 * GB, "cuda:1")


def test_gpus_of_different_kinds_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    assert other_gpus("auto", ["L40", "L40"], 0) == other_gpus("auto", ["L40"], 0) == ""
    says = "device=auto: of 2 GPUs of different kinds this run uses cuda:0, H100; device=cuda:1 is T4"
    assert other_gpus("auto", ["H100", "T4"], 0) == says
    monkeypatch.setattr("train.api.gpu_names", lambda: ["H100", "T4"])
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (GB, 2 * GB))
    with pytest.raises(SettingsError, match="cuda:0"):
        look_at_gpus(settings(tmp_path, "device=auto"), torch.device("cuda"))
    assert says in caplog.text
