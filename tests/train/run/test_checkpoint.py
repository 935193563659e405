"""Files that are whole or not there, and faults that are noticed."""

import errno
import hashlib
import os
import pickle
import re
import threading
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from busso.cards.base.files import temporary_beside
from busso.train.dqn.replay.buffer import ReplayBuffer
from busso.train.dqn.replay.transitions import NStepTransitions, Transitions
from busso.train.run.checkpoint import archive, checkpoint, columns, pruning, segments
from busso.train.run.checkpoint.background_writer import BackgroundWriter
from busso.train.run.checkpoint.checkpoint import CheckpointError
from busso.train.run.checkpoint.columns import Columns
from busso.train.run.checkpoint.files import Hashing, NewerFormatError, on_disk
from tests.errors import error_about
from tests.limits import until
from tests.train.rows import rows
from tests.train.runs import equal, whole
from tests.train.runs import saved as saved_by_torch

CPU = torch.device("cpu")
STATE = {"weights": torch.arange(1000.0), "n": 3, "nested": {"list": [1, 2.5, "x", None]}}


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a buffer with 37 bytes a row, 27 rows in each piece, and 250 in a segment."""
    monkeypatch.setattr(columns, "PIECE_BYTES", 1000)
    monkeypatch.setattr(segments, "SEGMENT_BYTES", 250 * 37)


def saved(folder: Path, episodes: int = 7) -> Path:
    path = checkpoint.path_for(folder, episodes)
    checkpoint.save(path, STATE)
    return path


def test_round_trip(tmp_path: Path) -> None:
    state = checkpoint.load(saved(tmp_path))
    assert torch.equal(state["weights"], STATE["weights"])
    assert state["nested"]["list"] == [1, 2.5, "x", None] and state["n"] == 3
    assert [p.name for p in tmp_path.iterdir()] == ["episode_000000000007.pt"]


@pytest.fixture
def with_rows(tmp_path: Path) -> Path:
    """A checkpoint with rows in a segment."""
    path = checkpoint.path_for(tmp_path, 7)
    checkpoint.save(path, STATE | {"replay": filled(200).state_dict()})
    return path


def parts(data: bytes) -> dict[str, int]:
    """Where something of each part of a file lies."""
    comment = data.rindex(b"PK\5\6") + 22
    return {
        "archive": data.index(b"archive/data/0") + 200,
        "directory": data.rindex(b"PK\1\2") + 30,
        "end of the directory": comment - 10,
        "length of the comment": comment - 2,
        "comment": comment,
        "description": comment + 40,
        "magic": len(data) - 80,
        "checksum": len(data) - 30,
    }


PARTS = (*parts(b"PK\1\2 archive/data/0 PK\5\6"), 0, 10, 500, -1)


@pytest.mark.parametrize("flipped", [False, True])
@pytest.mark.parametrize("place", PARTS)
def test_truncated(with_rows: Path, place: int | str, flipped: bool) -> None:
    """Or with one bit that is another."""
    data = bytearray(with_rows.read_bytes())
    at = place if isinstance(place, int) else parts(bytes(data))[place]
    if flipped:
        data[at] ^= 4
    with_rows.write_bytes(data if flipped else data[:at])
    with error_about(CheckpointError, with_rows) as caught:
        checkpoint.load(with_rows)
    assert caught.value.problem.startswith(("damaged", "not a checkpoint"))  # before anything in it is read


def test_every_byte_of_the_end_counts(with_rows: Path) -> None:
    """From the directory of the archive on: its end, the comment, the checksum. Of each byte one bit, in turn."""
    data = with_rows.read_bytes()
    for at in range(data.rindex(b"PK\1\2"), len(data)):
        with_rows.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        with pytest.raises((CheckpointError, NewerFormatError)):
            checkpoint.load(with_rows)


def test_torch_and_zip_read_it(with_rows: Path) -> None:
    for mapped in (False, True):
        state = torch.load(with_rows, weights_only=True, mmap=mapped)
        assert torch.equal(state["weights"], STATE["weights"]) and state["replay"]["rows"] is None
    with zipfile.ZipFile(with_rows) as found:
        assert found.testzip() is None and found.comment == with_rows.read_bytes()[-len(found.comment) :]
        assert re.fullmatch(rb"\n\[\{.*\}\]\nbusso-checkpoint 4 [0-9a-f]{64}\n", found.comment)


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("exploded",)


def test_pickle_that_runs_code_is_refused_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a bare pickle, and inside files with a right checksum, in both forms of what torch writes."""
    monkeypatch.chdir(tmp_path)
    bare = tmp_path / "bare.pt"
    bare.write_bytes(pickle.dumps(_Bomb()))
    wrapped = tmp_path / "wrapped.pt"
    checkpoint.save(wrapped, {"x": _Bomb()})
    unzipped = tmp_path / "unzipped.pt"  # torch reads these by other code than its archives
    body = saved_by_torch({"x": _Bomb()}, _use_new_zipfile_serialization=False) + b"\n[]\n" + archive.MAGIC
    unzipped.write_bytes(body + hashlib.sha256(body).hexdigest().encode() + b"\n")
    for path in (bare, wrapped, unzipped):
        with pytest.raises(CheckpointError):
            checkpoint.load(path)
    assert not (tmp_path / "exploded").exists()


KINDS = {"place": ["t"], "kinds": [["int64", [2]]], "rows": 1, "first": 0, "piece": 9, "inserted": 1, "segments": []}


@pytest.mark.parametrize(
    "described",
    [
        5,
        [{}],
        [KINDS | {"rows": 10**12, "inserted": 10**12}],
        [KINDS | {"rows": -1}],
        [KINDS | {"piece": 0}],
        [KINDS | {"kinds": [["complex64", [2]]], "rows": 0, "inserted": 0}],
        [KINDS | {"place": ["x", "y"], "rows": 0, "inserted": 0}],
        [KINDS | {"place": [], "rows": 0, "inserted": 0}],
    ],
)
def test_columns_that_cannot_be(tmp_path: Path, described: Any) -> None:
    """A file with a right checksum and a description of columns that makes no sense."""
    path = tmp_path / "odd.pt"
    with on_disk(path) as file:
        archive.write(file, {"n": 3}, described)
    with error_about(CheckpointError, path, "cannot be loaded"):
        checkpoint.load(path)


def test_prune_keeps_the_newest_and_best(tmp_path: Path) -> None:
    for episodes in (5, 1000, 20):
        saved(tmp_path, episodes)
    checkpoint.save(tmp_path / checkpoint.BEST, STATE)
    temporary_beside(tmp_path / "episode_000000000030.pt").write_bytes(b"half")
    pruning.prune(tmp_path, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "best.pt",
        "episode_000000000020.pt",
        "episode_000000001000.pt",
    ]


def test_what_cannot_be_deleted_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The checkpoint is on disk; the next one has the older ones deleted."""
    unlink, left_over = Path.unlink, temporary_beside(tmp_path / "x")
    left_over.touch()

    def fails(path: Path, **how: bool) -> None:
        if path in (left_over, *checkpoint.listed(tmp_path)):
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        unlink(path, **how)

    monkeypatch.setattr(Path, "unlink", fails)
    writer = BackgroundWriter()
    for done in (1, 2):
        writer.save(checkpoint.path_for(tmp_path, done), {"x": done}, keep=1)
        writer.wait()
    assert len(checkpoint.listed(tmp_path)) == 2 and str(checkpoint.path_for(tmp_path, 1)) in caplog.text
    monkeypatch.undo()
    writer.save(checkpoint.path_for(tmp_path, 3), {"x": 3}, keep=1)
    writer.wait()
    assert list(tmp_path.iterdir()) == [checkpoint.path_for(tmp_path, 3)]


def test_two_that_are_set_aside_under_one_name_are_both_kept(tmp_path: Path) -> None:
    paths = []
    for content in (b"a", b"b", b"c"):
        path = checkpoint.path_for(tmp_path, 7)
        path.write_bytes(content)
        paths.append(checkpoint.set_aside(path))
    assert [path.read_bytes() for path in paths] == [b"a", b"b", b"c"] and checkpoint.listed(tmp_path) == []


def test_background_writer_reports_a_failure_once(tmp_path: Path) -> None:
    writer = BackgroundWriter()
    writer.save(tmp_path / "missing" / "x.pt", STATE, keep=1)
    with error_about(CheckpointError, tmp_path / "missing" / "x.pt", hint="runs=FOLDER"):
        writer.wait()
    writer.wait()


def filled(inserted: int) -> ReplayBuffer:
    replay = ReplayBuffer(NStepTransitions, 1000, 2, CPU, seed=1)
    replay.add(rows(0, inserted))
    return replay


def contents(state: dict[str, Any]) -> dict[str, Any]:
    """A copy of a buffer's state that nothing changes."""

    def copied(value: Any) -> Any:
        if isinstance(value, dict):
            return contents(value)
        return whole(value) if isinstance(value, Columns) else value.clone() if isinstance(value, Tensor) else value

    return {key: copied(value) for key, value in state.items()}


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """A disk that takes a block only when a permit is there."""
    permits, write = threading.Semaphore(0), Hashing.write

    def waits(file: Hashing, data: Any) -> int:
        assert permits.acquire(timeout=60)
        return write(file, data)

    monkeypatch.setattr(Hashing, "write", waits)
    yield permits
    permits.release(1_000_000)


class Adding(threading.Thread):
    """Adds rows in a thread, which can be seen to wait."""

    def __init__(self, replay: ReplayBuffer, *batches: Transitions) -> None:
        super().__init__(daemon=True)
        self._replay, self._batches = replay, batches
        self.added = 0
        self.start()

    def run(self) -> None:
        for batch in self._batches:
            self._replay.add(batch)
            self.added += 1

    def waits(self) -> bool:
        """Whether it is not done after a while in which it would be."""
        self.join(0.3)
        return self.is_alive()


@pytest.mark.parametrize(("inserted", "four_pieces"), [(1000, 4 * 27), (1370, 4 * 27), (5999, 1 + 3 * 27)])
def test_learning_goes_on_while_a_full_buffer_is_written(
    tmp_path: Path, slow_disk: threading.Semaphore, inserted: int, four_pieces: int
) -> None:
    """The file is the buffer at the moment of the call; who adds waits for the disk, and only where it catches up.

    Of 5,999 rows the oldest is the last of its segment.
    """
    replay, writer, path = filled(inserted), BackgroundWriter(), tmp_path / "x.pt"
    before = contents(replay.state_dict())
    started = time.perf_counter()
    writer.save(path, {"replay": replay.state_dict()})
    assert time.perf_counter() - started < 5 and not path.exists()
    for _ in range(6 * 4 + 1):  # four pieces of six columns, and the first block of the fifth
        slow_disk.release()
    adding = Adding(replay, *(rows(inserted + k, 1) for k in range(1001)))
    assert adding.waits() and adding.added == four_pieces
    slow_disk.release(1_000_000)
    adding.join(60)
    writer.wait()
    assert adding.added == 1001 and replay.inserted == inserted + 1001
    state = checkpoint.load(path)["replay"]
    assert equal(contents(state), before) == []
    other = ReplayBuffer(NStepTransitions, 1000, 2, CPU, seed=9)
    other.load_state_dict(state)
    assert equal(contents(other.state_dict()), before) == []


def test_two_checkpoints_under_way_are_both_exact(tmp_path: Path, slow_disk: threading.Semaphore) -> None:
    replay, writer = filled(1000), BackgroundWriter()
    first = contents(replay.state_dict())
    writer.save(tmp_path / "1.pt", replay.state_dict())
    slow_disk.release(6 * 10 + 1)  # the first segment, and a block of the next
    adding = Adding(replay, *(rows(1000 + k, 1) for k in range(100)))
    adding.join(60)
    until("the first segment is on disk", lambda: replay._segments.find(tmp_path / "replay", 100, 250) is not None, 60)
    second = contents(replay.state_dict())
    writer.save(tmp_path / "2.pt", replay.state_dict())
    adding = Adding(replay, rows(1100, 150), rows(1250, 1))
    assert adding.waits() and adding.added == 1, "what is in the first segment is on disk for the second one, too"
    slow_disk.release(1_000_000)
    adding.join(60)
    writer.wait()
    assert equal(contents(checkpoint.load(tmp_path / "1.pt")), first) == []
    assert equal(contents(checkpoint.load(tmp_path / "2.pt")), second) == []


def test_a_full_disk_keeps_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk fills up in the middle of the columns, while rows wait to be overwritten."""
    replay, writer, path = filled(1000), BackgroundWriter(), tmp_path / "x.pt"
    checkpoint.save(path, {"n": 1})
    blocks, go_on, write = iter(range(100)), threading.Event(), Hashing.write

    def full(file: Hashing, data: Any) -> int:
        if next(blocks) == 20:
            assert go_on.wait(60)
            raise OSError(28, "No space left on device")
        return write(file, data)

    monkeypatch.setattr(Hashing, "write", full)
    writer.save(path, replay.state_dict())
    adding = Adding(replay, rows(1000, 1000))
    assert adding.waits()
    go_on.set()
    adding.join(60)
    assert not adding.is_alive() and replay.inserted == 2000
    with pytest.raises(CheckpointError, match="No space left"):
        writer.wait()
    assert checkpoint.load(path) == {"n": 1} and sorted(tmp_path.rglob("*")) == [tmp_path / "replay", path]
    monkeypatch.undo()
    writer.save(path, replay.state_dict())
    writer.wait()
    assert equal(contents(checkpoint.load(path)), contents(replay.state_dict())) == []
