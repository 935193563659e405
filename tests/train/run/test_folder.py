"""Two trainers on one run, on file systems with and without effective locks."""

import itertools
import json
import os
import shlex
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.base import lock
from busso.base.lock import read_owner
from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.run import checkpoint
from busso.train.run.folder import RunFolder, RunInUseError
from busso.train.run.runner import Runner
from tests.base.test_lock import AWAY, put
from tests.errors import error_about, key_of
from tests.train.runs import TrainedRuns, settings, small


def written(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the files of a run with sizes and times, without the log, to which either process may write at its end."""
    found = {path: path.stat() for path in folder.rglob("*") if path.is_file() and "train.log" not in path.name}
    return {str(path): (stat.st_size, stat.st_mtime_ns) for path, stat in found.items()}


@pytest.mark.parametrize(
    ("owner", "method", "call"),
    [(RunFolder, "resume", 1), (Runner, "run", 1), (Runner, "_step", 5), (torch, "save", 1)],
)
def test_a_trainer_that_lost_its_run_writes_nothing_more(
    tmp_path: Path,
    trained_run: TrainedRuns,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    owner: Any,
    method: str,
    call: int,
) -> None:
    """Suspended while Ray started, a checkpoint was read, it trained, or it wrote: the new owner's files stay."""
    path = trained_run("episodes=64", runs=tmp_path)
    results = json.loads((path / "results.json").read_text())
    (path / "results.json").write_text(json.dumps(results | {"_run": results["_run"] | {"id": "of the other"}}))
    before: dict[str, tuple[int, int]] = {}
    original, calls = getattr(owner, method), itertools.count(1)

    def robbed(*given: Any) -> Any:
        if next(calls) == call:
            if method == "_step":
                given[0]._folder.writer.wait()
            put(path / ".lock", **AWAY)
            before.update(written(path))
        return original(*given)

    monkeypatch.setattr(owner, method, robbed)
    assert main(small(tmp_path)) == 2
    assert key_of(capsys.readouterr().err, alone=False) == str(path)
    after = written(path)
    # Points of curves may be written where the file is open, and the file of a checkpoint goes if it is not renamed.
    lost = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    assert all("tensorboard" in name if method == "_step" else name.endswith(".tmp") for name in lost)
    owned = read_owner((path / ".lock.owner").read_bytes())
    assert owned is not None and owned.host == AWAY["host"]


@pytest.fixture
def restarted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, float], None]:
    """Make this process a job that was requeued after its node died."""

    def die(runs: Path, stale: float) -> None:
        folder = settings(runs).folder
        folder.mkdir(parents=True, exist_ok=True)
        put(folder / ".lock", **AWAY, job="7")
        monkeypatch.setattr(lock, "STALE", stale)
        monkeypatch.setattr(lock, "POLL", 0.1)
        monkeypatch.setenv("SLURM_JOB_ID", "7")
        monkeypatch.setenv("SLURM_RESTART_COUNT", "1")

    return die


def test_a_restarted_job_waits_for_its_dead_start_and_goes_on(
    tmp_path: Path, trained_run: TrainedRuns, restarted: Callable[[Path, float], None], capsys: Any
) -> None:
    trained_run("episodes=64", runs=tmp_path)
    restarted(tmp_path, 0.4)
    assert main(small(tmp_path, "episodes=96")) == 0
    said = capsys.readouterr().err
    assert "process 4711 on node9, job 7" in said and "taken over" in said and "resumed from" in said


@pytest.mark.parametrize(("number", "code"), [(signal.SIGUSR1, 75), (signal.SIGINT, 130)])
def test_signals_end_the_waiting(
    tmp_path: Path, restarted: Callable[[Path, float], None], capsys: Any, number: int, code: int
) -> None:
    restarted(tmp_path, 60.0)
    before = signal.getsignal(number)

    def send() -> None:
        while signal.getsignal(number) == before:  # until the run handles signals; a slow start may take seconds
            time.sleep(0.05)
        os.kill(os.getpid(), number)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    assert main(small(tmp_path)) == code
    sender.join()
    assert key_of(capsys.readouterr().err, alone=False) == str(settings(tmp_path).folder)
    assert read_owner((settings(tmp_path).folder / ".lock.owner").read_bytes()).host == "node9"  # type: ignore[union-attr]


def test_a_look_at_a_run_waits_for_nothing(tmp_path: Path, restarted: Callable[[Path, float], None]) -> None:
    restarted(tmp_path, 60.0)
    with error_about(RunInUseError, settings(tmp_path).folder, "node9", ".lock.owner"):
        RunFolder(settings(tmp_path)).newest()


def test_the_hint_of_a_changed_setting_can_be_typed(tmp_path: Path) -> None:
    phases = "[{until: 100, mix: {random: 0.5, greedy: 0.5}}, {until: null, mix: {random: 1}}]"
    before = settings(tmp_path, f"opponents.phases={phases}")
    found = checkpoint.LoadedCheckpoint(tmp_path, {"settings": asdict(before)}, {})
    with error_about(SettingsError, "opponents.phases") as error:
        RunFolder(settings(tmp_path))._compare(found)
    (typed,) = shlex.split(error.value.hint.partition("resume it with ")[2])
    assert settings(tmp_path, typed) == before


def test_a_run_that_is_moved_is_the_same_run(tmp_path: Path, trained_run: TrainedRuns) -> None:
    """Into another folder of runs under another name, and then addressed by Hydra's run folder."""
    trained_run("episodes=64", runs=tmp_path / "a")
    moved = tmp_path / "b" / "tressette" / "other"
    moved.parent.mkdir(parents=True)
    (tmp_path / "a" / "tressette" / "small").rename(moved)
    assert main(small(tmp_path / "b", "name=other", "episodes=128")) == 0
    assert main(small(tmp_path / "c", f"hydra.run.dir={moved}", "episodes=192")) == 0
    assert checkpoint.listed(moved / "checkpoints")[0].stem == "episode_000000000192" and not (tmp_path / "c").exists()
