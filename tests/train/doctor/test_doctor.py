"""`busso doctor`: findings, and whether a run would start."""

import json
from functools import partial
from itertools import zip_longest
from pathlib import Path

import pytest
import torch

from busso.base import system
from busso.command.plain_console import PlainConsole
from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.doctor import measure
from busso.train.doctor import report as doctor
from busso.train.doctor.memory import GB, buffer_bytes, check_gpu_memory, check_job_memory
from busso.train.run import checkpoint
from busso.train.run.folder import RunFolder
from tests.errors import error_about
from tests.train.runs import TrainedRuns, settings, small


@pytest.fixture
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure each stage only briefly."""
    monkeypatch.setattr(measure, "measure", partial(measure.measure, seconds=0.1))


@pytest.mark.usefixtures("_short")
def test_a_run_that_would_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)  # a long path would wrap a line of the table
    assert main(["doctor", *small(Path("runs"))]) == 0
    text = capsys.readouterr().out
    assert all(stage in text for stage in ("rollout", "replay", "learner")) and text.count("limits") == 1
    assert text.count("limited by the ") == 1
    words = " ".join(text.replace("│", " ").split())
    assert torch.__version__ in words and "starts from scratch" in words
    assert not any(tmp_path.iterdir())  # checks write nothing


@pytest.mark.usefixtures("_short")
def test_players_of_files_below_the_current_folder(
    tmp_path: Path, trained_run: TrainedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run would have its own folder, so they are not the run itself."""
    run = trained_run("episodes=64", runs=tmp_path)
    monkeypatch.chdir(tmp_path)
    opponent = f"evaluation.opponents=[{run.relative_to(tmp_path)}]"
    assert main(["doctor", *small(Path("runs"), opponent, "name=another")]) == 0


def found(runs: Path, what: str, *overrides: str) -> doctor.Finding:
    (finding,) = [each for each in doctor.examine(settings(runs, *overrides)) if each.what == what]
    return finding


def test_runs_that_would_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    folder, device = found(tmp_path / "file", "run folder"), found(tmp_path, "device", "device=cuda:77")
    assert folder.verdict == "error" and "runs=" in folder.says
    assert device.verdict == "error" and "cuda:77" in device.says
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    findings = doctor.examine(settings(tmp_path, "rollout=ray"))
    assert any(finding.verdict == "error" for finding in findings)
    assert [finding.what for finding in findings if finding.verdict == "error"] == ["Ray"]


def test_workers_of_a_cluster_are_not_guessed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cpus = partial(found, tmp_path, "CPUs", "rollout=ray")
    monkeypatch.setattr("busso.train.rollout.ray.backend.nodes_of_cluster", lambda settings: [])
    assert "only this node" not in cpus("rollout.workers=null").says
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert "only this node of the cluster at RAY_ADDRESS is counted" in cpus("rollout.workers=null").says
    assert "only this node" not in cpus("rollout.workers=3").says


def test_runs_that_could_not_be_resumed(tmp_path: Path, trained_run: TrainedRuns) -> None:
    folder = partial(found, tmp_path, "run folder")
    trained_run("episodes=64", runs=tmp_path)
    assert folder().verdict == "ok" and "resumes from episode_000000000064.pt" in folder().says
    assert folder("learner.lr=0.5").verdict == "error" and "learner.lr" in folder("learner.lr=0.5").says
    with RunFolder(settings(tmp_path)):
        assert folder().verdict == "error" and "in use by another process" in folder().says
    (newest,) = checkpoint.listed(settings(tmp_path).folder / "checkpoints")
    newest.write_bytes(b"damaged")
    assert folder().verdict == "error" and newest.exists()  # checks change nothing


def test_exit_code_and_what_it_does_not_look_at(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *small(tmp_path, "device=cuda:77")]) == 2
    assert "device" in capsys.readouterr().out
    assert main(["doctor", "--json", *small(tmp_path, "device=cuda:77")]) == 2
    found = json.loads(capsys.readouterr().out)
    assert not found["starts"] and "error" in {
        each["verdict"] for each in found["findings"] if each["what"] == "device"
    }
    assert main(["doctor", "--json", *small(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["starts"] and found["limited_by"] in {each["name"] for each in found["stages"]}
    assert main(["doctor", "experiment=blackjack_q"]) == 2
    assert "error: doctor: examines runs of algo=dqn" in capsys.readouterr().err


def test_a_narrow_screen_cuts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    says = "runs/sweeps/learner.lr=0.001,network.hidden=[192,192],seed=0 starts from scratch"
    stage = measure.Stage("learner", 31_853.0, "124 updates/s with learner.threads=1", "a GPU")
    for part in doctor.screen([doctor.Finding("run folder", says)], measure.Measured([stage], in_turn=True)):
        PlainConsole(width=40).print(part)
    rows = [line.split("│")[1:-1] for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    cells = "".join("".join(cell.strip() for cell in column) for column in zip_longest(*rows, fillvalue=""))
    assert says.replace(" ", "") in cells.replace(" ", "") and "31,853" in cells


def test_what_a_job_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    """The minimum of the machine's and Slurm's numbers."""
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE", "SLURM_MEM_PER_NODE", "SLURM_MEM_PER_CPU"):
        monkeypatch.delenv(name, raising=False)
    everything, all_memory = system.cpus(), system.memory()
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "1")
    monkeypatch.setenv("SLURM_MEM_PER_CPU", "700")
    assert system.cpus() == 1 and system.memory() == 700 << 20
    assert 80 << 20 <= system.object_store() <= int(0.15 * (700 << 20))
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "1000")
    assert system.memory() == 1000 << 20
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "99999999")
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "9999")
    assert system.memory() == all_memory and system.cpus() == everything


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
    memory = found(tmp_path, "memory", "device=cpu", *LARGE)
    assert memory.verdict == "error" and memory.says.startswith("replay.capacity: ")
