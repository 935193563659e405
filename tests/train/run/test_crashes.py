"""Crashes at any moment: of the machine during a save, of trainers, and of all workers.

After a crash during a save the old or the new file remains, never none.
"""

import errno
import multiprocessing
import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.base.files import make_folder, write_atomic
from busso.command.settings.checks import SettingsError
from busso.train.__main__ import main
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.rollout.backend import BackendLostError, LocalBackend
from busso.train.rollout.request import Weights
from busso.train.rollout.transitions import NStepTransitions
from busso.train.run import checkpoint
from busso.train.run.background_writer import BackgroundWriter, copied
from busso.train.run.folder import RunFolder
from busso.train.run.runner import Runner
from busso.train.trainer import DqnTrainer
from tests.disk import Disk, lay_out, watched
from tests.errors import key_of
from tests.limits import seconds
from tests.train.rows import rows
from tests.train.runs import OWN_TO_A_RUN, TrainedRuns, equal, newest, settings, small
from tests.train.warm import train

SAVES = 4


class Run:
    """A buffer of 150 rows, its checkpoints and its best network: saved states by number of the save."""

    def __init__(self, folder: Path, keep: int) -> None:
        self.folder, self.keep = folder, keep
        self.replay = ReplayBuffer(NStepTransitions, 150, 2, torch.device("cpu"), seed=1)
        self.writer, self.saved = BackgroundWriter(), list[dict[str, Any]]()

    def save(self) -> None:
        self.replay.add(rows(self.replay.inserted, 70))
        number = len(self.saved) + 1
        self.saved.append(copied(self.replay.state_dict()))
        path = checkpoint.path_for(self.folder, number)
        self.writer.save(path, {"number": number, "replay": self.replay.state_dict()}, self.keep)
        self.writer.save(self.folder / checkpoint.BEST, {"number": number})
        self.writer.wait()


def faults_of_a_run(tmp_path: Path, keep: int = 1) -> Iterator[str]:
    """Save a few checkpoints, then yield everything that a crash would break."""
    runs = tmp_path / "runs"
    runs.mkdir()
    run = Run(runs / "spike" / "small" / "checkpoints", keep)
    with watched(runs) as disk:
        make_folder(run.folder)
        for _ in range(SAVES):
            run.save()
            disk.mark()
    for number, crash in enumerate(disk.crashes()):
        after = tmp_path / str(number)
        lay_out(crash.left, after)
        folder = after / "spike" / "small" / "checkpoints"
        if problem := fault(folder, run, crash.marks):
            yield f"after {crash.marks} saves and {crash.after}: {problem}"


def fault(folder: Path, run: Run, marks: int) -> str:
    """Return the fault in the files that the next start finds; empty if there is none."""
    try:
        found = checkpoint.load_newest(folder)
        for path in checkpoint.listed(folder)[: run.keep]:
            checkpoint.load(path)
        best = checkpoint.load(folder / checkpoint.BEST)["number"] if (folder / checkpoint.BEST).exists() else 0
    except ValueError as error:  # includes CheckpointError
        return str(error)
    number = 0 if found is None else found.state["number"]
    if not (marks <= number <= marks + 1 and marks <= best <= marks + 1):
        return f"checkpoint {number}, best {best}"
    if found is None:
        return ""
    if found.problems or equal(found.state["replay"], run.saved[number - 1]):
        return f"{found.problems} the newest is not what was saved"
    return ""


@pytest.mark.parametrize("keep", [1, 2])
def test_the_newest_checkpoint_is_the_old_or_the_new_one(tmp_path: Path, keep: int) -> None:
    """With its replay buffer, and with older ones deleted; a completed save survives whatever follows."""
    assert list(faults_of_a_run(tmp_path, keep)) == []


def test_the_folders_of_a_run_are_there_once_it_has_them(tmp_path: Path) -> None:
    with watched(tmp_path) as disk:
        with RunFolder(settings(tmp_path / "new" / "runs")):
            pass
        disk.mark()
    trees = [crash.left for crash in disk.crashes() if crash.marks]
    assert trees and all("new/runs/tressette/small/checkpoints" in tree for tree in trees)


SYNC = Disk.sync


@pytest.mark.parametrize("name", [".episode_", ".best.pt", "checkpoints", "small", "spike", "runs"])
def test_each_sync_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Files are synced before they are renamed, and so are folders: a crash reveals each missing sync."""
    monkeypatch.setattr(Disk, "sync", lambda disk, path: path.name.startswith(name) or SYNC(disk, path))
    assert any(faults_of_a_run(tmp_path))


@pytest.mark.parametrize("synced", [True, False])
def test_a_file_that_is_replaced_is_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, synced: bool
) -> None:
    """Such as saves of a table, results.json, and all other files written at once."""
    if not synced:
        monkeypatch.setattr(Disk, "sync", lambda disk, path: None)
    root = tmp_path / "root"
    root.mkdir()
    with watched(root) as disk:
        for number in range(1, 4):
            write_atomic(root / "file", str(number))
            disk.mark()
    found = []
    for number, crash in enumerate(disk.crashes()):
        lay_out(crash.left, after := tmp_path / str(number))
        content = (after / "file").read_text() if (after / "file").exists() else ""
        found.append((crash.marks, int(content or 0)))
    assert all(marks <= content <= marks + 1 for marks, content in found) == synced, found


CPU = torch.device("cpu")
KILLS = 12
# A checkpoint after every batch, and a buffer large enough that writing one takes a while.
LONG = ("checkpoint.every_episodes=32", "replay.capacity=200000", "evaluation.every_episodes=400")


@pytest.fixture(scope="module")
def drivers() -> Iterator[multiprocessing.context.BaseContext]:
    """Fork drivers from a warm process; see `tests.train.warm`."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.train.warm"])
    os.environ["BUSSO_TEST_WARM"] = "1"
    first = context.Process(target=time.sleep, args=(0,))
    first.start()
    first.join()
    del os.environ["BUSSO_TEST_WARM"]
    yield context
    from multiprocessing import forkserver

    forkserver._forkserver._stop()  # type: ignore[attr-defined]


def being_written(folder: Path, driver: int) -> bool:
    return any(folder.rglob(f".*.{driver}.*.tmp"))


@pytest.mark.slow
def test_drivers_killed_at_any_moment_end_where_an_uninterrupted_one_does(tmp_path: Path, drivers: Any) -> None:
    """Half of them are killed during the write of a checkpoint."""
    moments, folder = random.Random(4), tmp_path / "killed" / "tressette" / "small" / "checkpoints"
    run = (f"episodes={60 * KILLS}", *LONG)
    while_writing, saved = 0, set[Path]()
    for kill in range(KILLS):
        driver = drivers.Process(target=train, args=(small(tmp_path / "killed", *run),))
        driver.start()
        # Counted in checkpoints rather than seconds: the run must outlast all kills on any machine.
        wanted, end = len(saved) + moments.randrange(3), time.monotonic() + seconds(30)
        while len(saved := saved | set(checkpoint.listed(folder))) < wanted and time.monotonic() < end:
            time.sleep(0.0005)
        time.sleep(moments.uniform(0, 0.05))
        while kill % 2 and driver.is_alive() and not being_written(folder, driver.pid) and time.monotonic() < end:
            time.sleep(0.0005)
        assert driver.is_alive(), "the run must be longer"
        os.kill(driver.pid, signal.SIGKILL)
        driver.join()
        while_writing += being_written(folder, driver.pid)
    assert while_writing >= KILLS // 4
    print(f"\n{KILLS} drivers killed, {while_writing} of them while a checkpoint was being written")
    assert main(small(tmp_path / "killed", *run)) == 0
    assert main(small(tmp_path / "whole", *run)) == 0
    found = equal(newest(tmp_path / "whole"), newest(tmp_path / "killed"))
    assert [path for path in found if path not in OWN_TO_A_RUN] == []
    assert not any(folder.rglob(".*.tmp"))


class Deserted(LocalBackend):
    """Backend that is lost when weights after 30 updates are published."""

    gone = False

    def publish(self, version: int, weights: Weights) -> None:
        super().publish(version, weights)
        if version > 30:
            self.gone = True
            raise BackendLostError("rollout", "all gone")


@pytest.mark.parametrize("stopping", [False, True])
def test_no_episode_is_lost_with_the_workers(tmp_path: Path, stopping: bool) -> None:
    """A signal to a job may end Ray first; then the loss is not an error."""
    chosen = settings(tmp_path, "episodes=320")
    with RunFolder(chosen) as folder:
        rollouts = Deserted(chosen, CPU)
        trainer = DqnTrainer(chosen, folder, CPU, rollouts, {})
        with nullcontext() if stopping else pytest.raises(BackendLostError):
            Runner(trainer, folder, lambda: stopping and rollouts.gone).run()
    state = newest(tmp_path)
    played = state["counters"]["episodes"] + sum(count for _, count, _ in state["open_requests"])
    assert played == state["counters"]["next_episode"] and 0 < state["counters"]["episodes"] < 320
    assert main(small(tmp_path, "episodes=320")) == 0
    assert newest(tmp_path)["counters"]["episodes"] == 320


def test_workers_that_are_lost_before_anything_is_played_are_not_waited_for_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first start's checkpoint records the failure: the second start is the last that a job script gets."""

    def lost(*_: Any) -> str:
        raise BackendLostError("rollout", "all gone")

    with monkeypatch.context() as patch:
        patch.setattr(LocalBackend, "describe", lost)
        codes = [main(small(tmp_path, "episodes=64")) for _ in range(2)]
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert codes == [75, 1]
    assert [key_of(f"{line}\n") for line in errors] == ["rollout", "rollout"]
    assert "this start made no progress" in errors[1]
    assert main(small(tmp_path, "episodes=64")) == 0 and newest(tmp_path)["counters"]["idle_starts"] == 0


def test_a_setting_that_turns_out_wrong_keeps_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing was learned, so that other settings may use the folder."""

    def refused(*_: Any) -> str:
        raise SettingsError("rollout.workers", "too many")

    with monkeypatch.context() as patch:
        patch.setattr(LocalBackend, "describe", refused)
        assert main(small(tmp_path)) == 2
    assert main(small(tmp_path, "learner.lr=1e-4", "episodes=64")) == 0


def full(pattern: str, after: int = 0) -> Callable[[Path], None]:
    """Refuse writes to files with matching paths, after the first `after` writes."""
    count = 0

    def refuse(path: Path) -> None:
        nonlocal count
        if re.search(pattern, str(path)):
            count += 1
            if count > after:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    return refuse


# Paths that cannot be written, successful writes before, and the error's key.
FILES = {
    "checkpoint": (r"/\.episode_", 0, "episode_"),
    "best network": (r"/\.best\.pt", 0, "best.pt"),
    "config.yaml": (r"/\.config\.yaml", 0, "config.yaml"),
    "a row of metrics.csv": (r"/metrics\.csv", 0, "metrics.csv"),
    "a point on a curve": (r"/events\.out", 3, "events.out"),
    "results.json": (r"small/\.results\.json", 0, "results.json"),
    "everything but the events, later": (r"^(?!.*events\.out)", 20, ""),
}


@pytest.fixture
def run(tmp_path: Path, trained_run: TrainedRuns) -> Path:
    """Copy a complete run into a folder below `tmp_path`."""
    return trained_run(runs=tmp_path)


@pytest.mark.parametrize("what", FILES)
def test_a_full_disk_is_one_line_and_costs_no_checkpoint(
    tmp_path: Path, run: Path, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    pattern, after, about = FILES[what]
    best = run / "checkpoints" / checkpoint.BEST
    checkpoint.save(best, checkpoint.load(best) | {"score": -1.0, "least": -1.0})
    # A further opponent adds columns to metrics.csv, which is therefore rewritten.
    longer = small(tmp_path, "episodes=320", "evaluation.opponents=[random,greedy]")
    with watched(tmp_path) as disk:
        disk.refuse_write = full(pattern, after)
        assert main(longer) == 2
    text = capfd.readouterr().err
    line = key_of(text, alone=False)
    assert about in line and "No space left" in text and "Traceback" not in text
    newest = checkpoint.load(checkpoint.listed(run / "checkpoints")[0])
    assert newest["counters"]["episodes"] >= 256 and not list(run.rglob(".*.tmp"))
    assert main(longer) == 0
    assert checkpoint.listed(run / "checkpoints")[0] == checkpoint.path_for(run / "checkpoints", 320)


def test_a_log_that_cannot_be_written_is_one_warning(
    tmp_path: Path, run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with watched(tmp_path) as disk:
        disk.refuse_write = full(r"/train\.log")
        assert main(small(tmp_path, "episodes=320")) == 0
    text = capfd.readouterr().err
    assert text.count(f"warning: {run / 'train.log'}: No space left") == 1 and "Logging error" not in text
