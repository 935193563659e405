"""Files that are whole or not there, and faults that are noticed."""

import os
import pickle
from pathlib import Path

import pytest
import torch

from train import checkpoint
from train.checkpoint import BackgroundWriter, CheckpointError

STATE = {"weights": torch.arange(1000.0), "n": 3, "nested": {"list": [1, 2.5, "x", None]}}


def saved(folder: Path, episodes: int = 7) -> Path:
    path = checkpoint.path_for(folder, episodes)
    checkpoint.save(path, STATE)
    return path


def test_round_trip(tmp_path: Path) -> None:
    state = checkpoint.load(saved(tmp_path))
    assert torch.equal(state["weights"], STATE["weights"])
    assert state["nested"] == STATE["nested"]
    assert [p.name for p in tmp_path.iterdir()] == ["episode_000000000007.pt"]


@pytest.mark.parametrize("size", [0, 10, 84, 85, 500, -1])
def test_truncated(tmp_path: Path, size: int) -> None:
    path = saved(tmp_path)
    data = path.read_bytes()
    path.write_bytes(data[:size])
    with pytest.raises(CheckpointError, match=f"{path.name}: (damaged|not a checkpoint)"):
        checkpoint.load(path)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
def test_one_flipped_bit(tmp_path: Path, share: float) -> None:
    path = saved(tmp_path)
    data = bytearray(path.read_bytes())
    data[int(share * len(data))] ^= 4
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"damaged|not a checkpoint"):
        checkpoint.load(path)


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("exploded",)


def test_pickle_that_runs_code_is_refused_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once as a bare pickle, once inside a file with a right checksum."""
    monkeypatch.chdir(tmp_path)
    bare = tmp_path / "bare.pt"
    bare.write_bytes(pickle.dumps(_Bomb()))
    wrapped = tmp_path / "wrapped.pt"
    checkpoint.save(wrapped, {"x": _Bomb()})
    for path in (bare, wrapped):
        with pytest.raises(CheckpointError):
            checkpoint.load(path)
    assert not (tmp_path / "exploded").exists()


def test_newest_good_one_is_used(tmp_path: Path) -> None:
    for episodes in (5, 10, 15):
        saved(tmp_path, episodes)
    newest = checkpoint.path_for(tmp_path, 15)
    newest.write_bytes(newest.read_bytes()[:-1])
    found = checkpoint.load_newest(tmp_path)
    assert found is not None
    path, _, problems = found
    assert path == checkpoint.path_for(tmp_path, 10)
    assert len(problems) == 1 and newest.name in problems[0] and "damaged" in problems[0]


def test_all_damaged_is_an_error_not_a_new_start(tmp_path: Path) -> None:
    saved(tmp_path).write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be used"):
        checkpoint.load_newest(tmp_path)
    assert checkpoint.load_newest(tmp_path / "empty") is None


def test_prune_keeps_the_newest_and_best(tmp_path: Path) -> None:
    for episodes in (5, 1000, 20):
        saved(tmp_path, episodes)
    checkpoint.save(tmp_path / checkpoint.BEST, STATE)
    (tmp_path / ".episode_000000000030.pt.99.tmp").write_bytes(b"half")
    checkpoint.prune(tmp_path, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "best.pt",
        "episode_000000000020.pt",
        "episode_000000001000.pt",
    ]


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        checkpoint.save(path, STATE)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


def test_background_writer_saves_what_was_there_at_the_call(tmp_path: Path) -> None:
    writer = BackgroundWriter()
    tensor = torch.zeros(10)
    writer.save(checkpoint.path_for(tmp_path, 1), {"t": tensor, "list": [tensor]}, keep=1)
    tensor += 1
    writer.wait()
    state = checkpoint.load(checkpoint.path_for(tmp_path, 1))
    assert not state["t"].any() and not state["list"][0].any()


def test_background_writer_reports_a_failure_once(tmp_path: Path) -> None:
    writer = BackgroundWriter()
    writer.save(tmp_path / "missing" / "x.pt", STATE, keep=1)
    with pytest.raises(CheckpointError, match="could not be written"):
        writer.wait()
    writer.wait()
