"""Memory of a GPU or job is checked before a run begins; the error names the key to lower."""

from pathlib import Path

import pytest

from busso.base import system
from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.doctor import report as doctor
from busso.train.doctor.memory import GB, buffer_bytes, check_gpu_memory, check_job_memory
from tests.errors import error_about
from tests.train.runs import settings, small

GIB = 1 << 30
LARGE = ("episodes=null", "minutes=1", "replay.capacity=100000000")


def test_a_buffer_that_is_too_large_for_a_gpu_is_told_what_would_fit(tmp_path: Path) -> None:
    large = settings(tmp_path, "replay.capacity=600000000")
    with error_about(SettingsError, "replay.capacity", "48.0 GB", hint="replay.capacity=") as caught:
        check_gpu_memory(large, 48 * GB, "cuda:0")
    fits = int(caught.value.hint.partition("=")[2])
    assert set(str(fits)[2:]) == {"0"}
    check_gpu_memory(settings(tmp_path, f"replay.capacity={fits}"), 48 * GB, "cuda:0")
    assert 0.9 * 46 * GB < fits * buffer_bytes(large) <= 46 * GB
    with error_about(SettingsError, "replay.capacity", "cuda:1 has 2.0 GB free", hint="device=cpu"):
        check_gpu_memory(settings(tmp_path), 2 * GB, "cuda:1")


@pytest.mark.parametrize(("on_gpu", "what"), [(False, "2.1 GB"), (True, "checkpoints of 100,000,000")])
def test_a_buffer_that_is_too_large_for_a_job_is_told_what_would_fit(tmp_path: Path, on_gpu: bool, what: str) -> None:
    """Of a buffer on a GPU, only the copies for checkpoints count."""
    large = settings(tmp_path, *LARGE)
    with error_about(SettingsError, "replay.capacity", what, hint="replay.capacity=") as caught:
        check_job_memory(large, 2 * GIB, on_gpu)
    fits = int(caught.value.hint.partition("=")[2].partition(",")[0])
    check_job_memory(settings(tmp_path, *LARGE, f"replay.capacity={fits}"), 2 * GIB, on_gpu)
    assert GIB < fits * 2 * buffer_bytes(large) < 2 * GIB
    with error_about(SettingsError, "replay.capacity", hint="lower it"):
        check_job_memory(large, GIB // 4, on_gpu)


def test_what_takes_nothing(tmp_path: Path) -> None:
    """Rows that the run never fills, and updates on a GPU."""
    check_job_memory(settings(tmp_path, "network.hidden=[65536,65536]"), GIB, on_gpu=True)
    check_job_memory(settings(tmp_path, "episodes=1000", "replay.capacity=100000000"), GIB)


@pytest.mark.parametrize(
    ("override", "key"),
    [
        ("learner.batch_size=100000000", "learner.batch_size"),
        ("rollout.games=100000000", "rollout.games"),
        ("network.hidden=[65536,65536]", "network.hidden"),
    ],
)
def test_what_else_takes_memory(tmp_path: Path, override: str, key: str) -> None:
    with error_about(SettingsError, key, hint="lower it"):
        check_job_memory(settings(tmp_path, override), 8 * GIB)
    check_job_memory(settings(tmp_path), GIB)


def test_a_run_that_does_not_fit_is_one_line_before_anything_is_allocated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(system, "memory", lambda: GIB)
    assert main(small(tmp_path, "device=cpu", *LARGE)) == 2
    assert capsys.readouterr().err.strip().splitlines()[-1].startswith("error: replay.capacity: ")
    found = doctor._memory(settings(tmp_path, "device=cpu", *LARGE))
    assert found.verdict == "error" and found.says.startswith("replay.capacity: ")
