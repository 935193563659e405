"""Two trainers on one run, with and without effective locks; results valid for its checkpoint."""

import itertools
import json
import os
import shlex
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

import busso
from busso.base import lock
from busso.base.lock import read_owner
from busso.cards.game import load_game
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import as_yaml
from busso.evaluate.export.source import open_source
from busso.evaluate.report.of_runs import scores_of
from busso.evaluate.report.runs import seeds_beside
from busso.train.__main__ import main
from busso.train.run import checkpoint, results
from busso.train.run.folder import RunFolder, RunInUseError
from busso.train.run.read import load_run, objective
from busso.train.run.results import read_results
from busso.train.run.runner import Runner
from busso.train.run.tensorboard import FOLDER, finish
from busso.train.settings.dqn import TrainSettings
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
    # A thread saves: without these, a row or an evaluation may be half written when the run is lost.
    no_curves = ["log_every_episodes=1000000", "evaluation.every_episodes=1000000"] if method == "save" else []
    assert main(small(tmp_path, *no_curves)) == 2
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
    path = checkpoint.path_for(before.folder / "checkpoints", 64)
    path.parent.mkdir(parents=True)
    checkpoint.save(path, {"settings": asdict(before)})
    with error_about(SettingsError, "opponents.phases") as error:
        RunFolder(settings(tmp_path)).newest()
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


ROWS = {"random": {"deals": 8, "win_rate": [0.5, 0.1]}}


def write(folder: Path, done: int) -> None:
    about = {"id": "a", "checkpoint": checkpoint.path_for(folder, done).name, "env_steps": 40 * done}
    (folder / results.FILE).write_text(json.dumps({"_run": about} | ROWS))


def add_checkpoint(folder: Path, done: int) -> Path:
    path = checkpoint.path_for(folder / "checkpoints", done)
    path.parent.mkdir(exist_ok=True)
    path.touch()
    return path


@pytest.mark.parametrize(("older", "newer"), [(64, 128), (10**12 - 64, 10**12)])
def test_results_of_the_newest_checkpoint_count(tmp_path: Path, older: int, newer: int) -> None:
    assert read_results(tmp_path) is None
    for done in (older, newer):
        add_checkpoint(tmp_path, done)
    write(tmp_path, newer)
    assert read_results(tmp_path) == ROWS
    write(tmp_path, older)
    assert read_results(tmp_path) is None


def test_where_the_checkpoints_were_deleted_results_count(tmp_path: Path) -> None:
    """As after a finished trial of a study."""
    write(tmp_path, 64)
    assert read_results(tmp_path) == ROWS


@pytest.mark.parametrize(
    "text",
    ["{", "3", '{"_run": {}}', '{"_run": 7}', "\0", '{"_run": {"id": "../x", "checkpoint": "a", "env_steps": 1}}'],
)
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / results.FILE).write_text(text)
    add_checkpoint(tmp_path, 64)
    with error_about(SettingsError, tmp_path / results.FILE, "damaged"):
        read_results(tmp_path)


@pytest.fixture
def run(trained_run: TrainedRuns) -> Path:
    """Train a run to its end, with settings that name the folder of the copy."""
    folder = trained_run()
    (folder / "config.yaml").write_text(as_yaml(of(folder)))
    return folder


def of(run: Path) -> TrainSettings:
    return settings(run.parents[1])


def results_everywhere(run: Path) -> list[bool]:
    """Return whether each reader finds results in the run."""
    other = shutil.copytree(run, run.parent / "other_seed")
    (other / "config.yaml").write_text((run / "config.yaml").read_text().replace("\nseed: 1\n", "\nseed: 2\n"))
    beside = seeds_beside(load_run(other))
    shutil.rmtree(other)
    shown = run / FOLDER / "results.json"
    shown.unlink(missing_ok=True)
    finish(run, 1)
    return [
        scores_of(load_run(run)) != {},
        load_run(run).results != {},
        len(beside) == 1,
        busso.load_run(run).results != {},
        open_source(str(run), load_game("tressette")).results != {},
        shown.exists(),
    ]


def test_every_reader_knows_of_which_checkpoint_results_are(run: Path) -> None:
    assert all(results_everywhere(run))
    assert objective(of(run))[0] >= 0
    newest = checkpoint.listed(run / "checkpoints")[0]
    shutil.copy(newest, checkpoint.path_for(newest.parent, 10**6))
    assert not any(results_everywhere(run))
    with pytest.raises(busso.BussoError):
        objective(of(run))
