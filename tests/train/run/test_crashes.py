"""Machine crashes at any moment of a save: the old or the new file remains, never none."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.base.files import make_folder, write_atomic
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.rollout.transitions import NStepTransitions
from busso.train.run import checkpoint
from busso.train.run.background_writer import BackgroundWriter, copied
from busso.train.run.folder import RunFolder
from tests.disk import Disk, lay_out, watched
from tests.train.rows import rows
from tests.train.runs import equal, settings

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
