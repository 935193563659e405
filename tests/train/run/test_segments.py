"""The buffer in segments: what a checkpoint costs, which files there are, and what happens when one is gone."""

import json
import os
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.train.dqn.replay.buffer import ReplayBuffer
from busso.train.dqn.replay.transitions import NStepTransitions
from busso.train.run.checkpoint import checkpoint, columns, pruning, segments
from busso.train.run.checkpoint.background_writer import BackgroundWriter
from busso.train.run.checkpoint.checkpoint import CheckpointError
from busso.train.run.checkpoint.files import Hashing
from busso.train.run.checkpoint.segments import StoredSegments
from tests.errors import error_about
from tests.train.rows import rows
from tests.train.run.test_checkpoint import contents
from tests.train.runs import equal

CPU = torch.device("cpu")
ROW = 37  # bytes, of these tests
LENGTH = 250  # rows of a segment
CAPACITY = 2000


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "PIECE_BYTES", 1000)
    monkeypatch.setattr(segments, "SEGMENT_BYTES", LENGTH * ROW)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The bytes of each write to a file."""
    sizes, write = list[int](), Hashing.write

    def counts(file: Hashing, data: Any) -> int:
        sizes.append(memoryview(data).nbytes)
        return write(file, data)

    monkeypatch.setattr(Hashing, "write", counts)
    yield sizes


class Run:
    """A buffer and its checkpoints, the newest three of which are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.replay = folder, self._empty()
        self.writer, self.saved = BackgroundWriter(), dict[Path, dict[str, Any]]()

    def _empty(self) -> ReplayBuffer:
        return ReplayBuffer(NStepTransitions, CAPACITY, 2, CPU, seed=1)

    def add(self, count: int) -> None:
        self.replay.add(rows(self.replay.inserted, count))

    def save(self, wait: bool = True) -> Path:
        path = checkpoint.path_for(self.folder, self.replay.inserted)
        state = {"acting": {"w": torch.full((3,), float(self.replay.inserted))}, "replay": self.replay.state_dict()}
        self.saved[path] = contents(state["replay"])
        self.writer.save(path, state, keep=3)
        if wait:
            self.writer.wait()
        return path

    def resume(self) -> checkpoint.Found:
        self.writer.wait()
        found = checkpoint.load_newest(self.folder)
        assert found is not None
        self.replay = self._empty()
        self.replay.load_state_dict(found.state["replay"])
        assert equal(contents(self.replay.state_dict()), self.saved[found.path]) == []
        return found

    def files(self) -> list[Path]:
        return sorted((self.folder / "replay").iterdir())


def test_a_checkpoint_costs_what_was_added(tmp_path: Path, written: list[int]) -> None:
    """The rows since the last one, again those of the segment that was not full, and 10 kB for all else.

    As the buffer fills, and when its oldest rows are overwritten.
    """
    run, costs = Run(tmp_path), []
    for _ in range(60):
        begun = run.replay.inserted // LENGTH * LENGTH
        run.add(170)
        written.clear()
        run.save()
        costs.append(sum(written))
        new = (run.replay.inserted - begun) * ROW
        assert new <= costs[-1] <= new + 10_000
        # Those of a full buffer, cut short at either end, and of two older checkpoints what they do not share with it.
        assert len(run.files()) <= CAPACITY // LENGTH + 2 + 2 * 2
    assert max(costs) < 0.35 * CAPACITY * ROW, "of segments of an eighth of the buffer"
    written.clear()
    run.save()
    assert sum(written) < 10_000, "nothing was added"


@pytest.mark.parametrize("seed", range(2))
def test_whatever_is_added_saved_and_resumed_all_checkpoints_that_are_kept_are_exact(tmp_path: Path, seed: int) -> None:
    """Rollouts larger than the buffer, two checkpoints under way at a time, kills, segments that were cut otherwise."""
    run, draws = Run(tmp_path), random.Random(seed)
    run.add(10)
    run.save()
    for _ in range(60):
        what = draws.random()
        if what < 0.5:
            run.add(draws.choice([1, 30, 249, 250, 600, 1999, 2500, 4100]))
        elif what < 0.85:
            run.save(wait=draws.random() < 0.5)
        elif what < 0.95:
            run.resume()
        else:
            run.writer.wait()
            segments.SEGMENT_BYTES = draws.choice([100, 250, 333]) * ROW
            run.resume()
    run.writer.wait()
    kept = checkpoint.listed(tmp_path)
    assert 1 < len(kept) <= 3
    needed = set()
    for path in kept:
        state = checkpoint.load(path)
        assert equal(contents(state["replay"]), run.saved[path]) == []
        needed |= {segment.name for segment in state["replay"]["rows"].segments}
    run.save()
    assert needed & {path.name for path in run.files()}
    for path in checkpoint.listed(tmp_path):
        needed |= {segment.name for segment in checkpoint.load(path)["replay"]["rows"].segments}
    assert {path.name for path in run.files()} <= needed, "and no file is left that none needs"


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 8
    path.write_bytes(data)


DAMAGE = {
    "gone": Path.unlink,
    "a flipped bit": flip,
    "shorter": lambda path: os.truncate(path, path.stat().st_size - 1),
    "empty": lambda path: os.truncate(path, 0),
    "another": lambda path: shutil.copy(sorted(path.parent.iterdir())[0], path),
    "another checksum": lambda path: path.write_bytes(b"busso-rows 1 " + bytes(64) + path.read_bytes()[77:]),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_with_a_damaged_segment_the_checkpoint_before_is_used(tmp_path: Path, damage: str) -> None:
    """And what plays is still there."""
    run = Run(tmp_path)
    for _ in range(2):
        run.add(900)
        run.save()
    newest, before = checkpoint.listed(tmp_path)
    last = run.files()[-1]
    assert last.name.startswith("rows_000000000001750_000000000001800")
    DAMAGE[damage](last)
    found = run.resume()
    assert found.path == before and list(found.problems) == [newest]
    assert f"{newest}: damaged ({last}" in found.problems[newest]
    assert checkpoint.load(newest)["acting"]["w"].tolist() == [1800] * 3
    assert checkpoint.load_named(newest)[1]["acting"]["w"].tolist() == [1800] * 3
    best = checkpoint.load_best(tmp_path)
    assert best is not None and best.path == newest


def test_with_a_damaged_segment_that_all_need_the_buffer_is_lost_and_nothing_else(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The newest file that is itself whole is gone on with."""
    run = Run(tmp_path)
    for _ in range(3):
        run.add(600)
        run.save()
    newest, middle, _ = checkpoint.listed(tmp_path)
    flip(newest)
    flip(run.files()[0])
    found = checkpoint.load_newest(tmp_path)
    assert found is not None and found.path == middle and list(found.problems) == [newest]
    with caplog.at_level("WARNING", logger="train"):
        fresh = ReplayBuffer(NStepTransitions, CAPACITY, 2, CPU, seed=1)
        fresh.load_state_dict(found.state["replay"])
    assert fresh.size == fresh.inserted == 0
    assert f"replay: {run.files()[0]} has changed: the replay buffer starts empty" in caplog.messages[-1]
    fresh.add(rows(7000, 300))
    path = checkpoint.path_for(tmp_path, 9000)
    checkpoint.save(path, {"replay": fresh.state_dict()})
    assert equal(contents(checkpoint.load(path)["replay"]), contents(fresh.state_dict())) == []
    for each in checkpoint.listed(tmp_path):
        os.truncate(each, 100)
    with error_about(CheckpointError, tmp_path, hint="name="):
        checkpoint.load_newest(tmp_path)


def test_a_checkpoint_that_is_copied_alone_plays(tmp_path: Path) -> None:
    run = Run(tmp_path / "run")
    run.folder.mkdir()
    run.add(900)
    copy = tmp_path / "copy.pt"
    shutil.copy(run.save(), copy)
    _, state = checkpoint.load_named(copy)
    assert state["acting"]["w"].tolist() == [900] * 3
    with pytest.raises(ValueError, match=r"replay/rows_.* cannot be read"):
        list(state["replay"]["rows"].pieces())
    shutil.copytree(run.folder / "replay", tmp_path / "replay")
    assert equal(contents(checkpoint.load(copy)["replay"]), run.saved[run.folder / copy_of(run)]) == []


def copy_of(run: Run) -> str:
    return checkpoint.listed(run.folder)[0].name


def test_a_run_that_goes_on_otherwise_leaves_older_checkpoints_as_they_were(tmp_path: Path) -> None:
    """The newest is damaged, and from the one before other rows follow, under the same numbers."""
    run = Run(tmp_path)
    for count in (400, 300):
        run.add(count)
        newest = run.save()
    flip(newest)
    before = run.resume().path
    checkpoint.set_aside(newest)
    run.replay.add(rows(5000, 300))
    again = run.save()
    assert again == newest
    for path in (again, before):
        assert equal(contents(checkpoint.load(path)["replay"]), run.saved[path]) == []


def test_nothing_is_deleted_when_it_cannot_be_read_what_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(tmp_path)
    run.add(400)
    path = run.save()
    before = run.files()
    path.rename(tmp_path / "aside")
    path.symlink_to(path)  # whoever opens it gets an error
    pruning.prune(tmp_path, 3)
    assert run.files() == before


@pytest.mark.parametrize(
    "change",
    [
        {"inserted": 900},
        {"rows": 4},
        {"first": 3},
        {"segments": []},
        {"segments": [["../../x", 0, 250, 27, ""]]},
        {"segments": [["rows_0_1_0123456789abcdef.seg", 0, 250, 0, ""]]},
        {"segments": [["rows_0_1_0123456789abcdef.seg", "0", 250, 27, ""]]},
        {"segments": [["rows_0_1_0123456789abcdef.seg", 1, 250, 27, ""]]},
        {"segments": 7},
    ],
)
def test_descriptions_that_cannot_be(tmp_path: Path, change: dict[str, Any]) -> None:
    run = Run(tmp_path)
    run.add(250)
    (description,) = json.loads(run.save().read_bytes().splitlines()[-2])
    assert StoredSegments(tmp_path / "replay", description).inserted == 250
    with pytest.raises((ValueError, TypeError)):
        StoredSegments(tmp_path / "replay", description | change)


def test_what_was_written_in_vain_leaves_no_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each start on a full disk would take more of it, and never give it back."""
    run = Run(tmp_path)
    run.add(600)
    run.save()
    before = run.files()

    def full(*given: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(torch, "save", full)
    for _ in range(2):
        run.add(600)
        with pytest.raises(CheckpointError, match="No space left"):
            run.save()
        assert run.files() == before
    monkeypatch.undo()
    run.resume()


def test_segments_of_a_checkpoint_that_was_set_aside_are_kept(tmp_path: Path) -> None:
    run = Run(tmp_path)
    run.add(600)
    aside = run.save()
    needed = set(run.files())
    checkpoint.set_aside(aside)
    run.add(CAPACITY)
    run.save()
    pruning.prune(tmp_path)
    assert needed <= set(run.files())
