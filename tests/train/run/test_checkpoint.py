"""Checkpoint files are complete or absent, damage is detected, and each belongs to its run."""

import errno
import json
import os
import pickle
import re
import signal
import threading
import zipfile
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch

from busso.base.files import temporary_beside
from busso.train.__main__ import main
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.rollout.transitions import NStepTransitions
from busso.train.run import background_writer, checkpoint
from busso.train.run.background_writer import BackgroundWriter, copied
from busso.train.run.checkpoint import CheckpointError, Hashing, OtherFormatError
from busso.train.run.folder import RunFolder
from busso.train.run.launches import read_launches
from busso.train.run.results import read_results
from busso.train.trainer import DqnTrainer
from tests.disk import watched
from tests.errors import error_about
from tests.train.rows import rows
from tests.train.runs import TrainedRuns, equal, folder, small, write_checkpoint
from tests.train.runs import saved as saved_by_torch

CPU = torch.device("cpu")
STATE = {"weights": torch.arange(1000.0), "n": 3, "nested": {"list": [1, 2.5, "x", None]}}


def saved(folder: Path, episodes: int = 7) -> Path:
    path = checkpoint.path_for(folder, episodes)
    checkpoint.save(path, STATE)
    return path


@pytest.fixture
def with_rows(tmp_path: Path) -> Path:
    """Save a checkpoint with a replay buffer."""
    path = checkpoint.path_for(tmp_path, 7)
    checkpoint.save(path, STATE | {"replay": copied(filled(200).state_dict())})
    return path


def test_any_cut_and_any_flipped_bit_are_noticed_before_anything_is_parsed(with_rows: Path) -> None:
    """In the archive, and at each byte of its end: the directory, the comment, the checksum."""
    data = with_rows.read_bytes()
    tensor = data.index(b"archive/data/0") + 200
    for at in (0, 10, 500, tensor, *range(data.rindex(b"PK\1\2"), len(data))):
        for broken in (data[:at], data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :]):
            with_rows.write_bytes(broken)
            with pytest.raises((CheckpointError, OtherFormatError)) as caught:
                checkpoint.load(with_rows)
            assert caught.value.problem.startswith(("damaged", "not a checkpoint", "format"))


def test_torch_and_zip_read_it(with_rows: Path) -> None:
    for mapped in (False, True):
        state = torch.load(with_rows, weights_only=True, mmap=mapped)
        assert equal(state, STATE | {"replay": filled(200).state_dict()}) == []
    with zipfile.ZipFile(with_rows) as archive:
        assert archive.testzip() is None and archive.comment == with_rows.read_bytes()[-len(archive.comment) :]
        assert re.fullmatch(rb"\nbusso-checkpoint 5 [0-9a-f]{64}\n", archive.comment)


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("exploded",)


def test_pickle_that_runs_code_is_refused_without_running_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a bare pickle, and within files with a valid checksum, in both formats of torch."""
    monkeypatch.chdir(tmp_path)
    bare = tmp_path / "bare.pt"
    bare.write_bytes(pickle.dumps(_Bomb()))
    wrapped = tmp_path / "wrapped.pt"
    checkpoint.save(wrapped, {"x": _Bomb()})
    unzipped = tmp_path / "unzipped.pt"  # torch reads these by other code than its archives
    write_checkpoint(unzipped, saved_by_torch({"x": _Bomb()}, _use_new_zipfile_serialization=False))
    for path in (bare, wrapped, unzipped):
        with pytest.raises(CheckpointError):
            checkpoint.load(path)
    assert not (tmp_path / "exploded").exists()


def test_prune_keeps_the_newest_and_best(tmp_path: Path) -> None:
    for episodes in (5, 1000, 20):
        saved(tmp_path, episodes)
    checkpoint.save(tmp_path / checkpoint.BEST, STATE)
    temporary_beside(tmp_path / "episode_000000000030.pt").write_bytes(b"half")
    checkpoint.prune(tmp_path, 2)
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "best.pt",
        "episode_000000000020.pt",
        "episode_000000001000.pt",
    ]


def test_what_cannot_be_deleted_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The checkpoint is on disk; the next one deletes the older ones."""
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


@pytest.fixture
def slow_disk(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Semaphore]:
    """Disk that takes a block only if a permit is available."""
    permits, write = threading.Semaphore(0), Hashing.write

    def waits(file: Hashing, data: Any) -> int:
        assert permits.acquire(timeout=60)
        return write(file, data)

    monkeypatch.setattr(Hashing, "write", waits)
    yield permits
    permits.release(1_000)


@pytest.mark.parametrize("inserted", [170, 1000, 5999])
def test_learning_goes_on_while_a_buffer_is_written(
    tmp_path: Path, slow_disk: threading.Semaphore, inserted: int
) -> None:
    """The file has the buffer at the time of the call, whatever is added meanwhile."""
    replay, writer, path = filled(inserted), BackgroundWriter(), tmp_path / "x.pt"
    before = copied(replay.state_dict())
    writing = writer.save(path, {"replay": replay.state_dict()})
    for k in range(2000):
        replay.add(rows(inserted + k, 1))
    assert replay.inserted == inserted + 2000 and not path.exists() and not writing.done()
    slow_disk.release(1_000)
    writer.wait()
    state = checkpoint.load(path)["replay"]
    assert equal(state, before) == []
    other = ReplayBuffer(NStepTransitions, 1000, 2, CPU, seed=9)
    other.load_state_dict(state)
    assert equal(other.state_dict(), before) == []


def test_the_memory_of_a_copy_is_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the next checkpoint only; each file has the state at its call. `best.pt` is saved in between."""
    allocated, sizes = background_writer._allocated, list[int]()
    monkeypatch.setattr(background_writer, "_allocated", lambda like: sizes.append(like.nbytes) or allocated(like))
    replay, writer, before = filled(1500), BackgroundWriter(), list[Any]()
    for k in range(3):
        state = {"acting": {"w": torch.full((5,), float(k))}, "replay": replay.state_dict()}
        before.append(copied(state))
        sizes.clear()
        writer.save(checkpoint.path_for(tmp_path, k), state, keep=9)
        writer.wait()
        assert sum(sizes) == (0 if k else COPY + 20)
        writer.save(tmp_path / checkpoint.BEST, {"acting": {"w": torch.full((5,), 100.0 + k)}})
        replay.add(rows(1500 + 70 * k, 70))
    writer.wait()
    for k in range(3):
        assert equal(checkpoint.load(checkpoint.path_for(tmp_path, k)), before[k]) == []
    assert checkpoint.load(tmp_path / checkpoint.BEST)["acting"]["w"].tolist() == [102.0] * 5


COPY = 1000 * 37 + 5056  # bytes: rows, and the state of the generator


@pytest.mark.parametrize(("available", "copies"), [(1 << 40, 2), (2 * COPY, 2), (2 * COPY - 1, 1), (0, 1)])
def test_a_second_copy_of_a_buffer_only_where_there_is_memory_for_it(
    tmp_path: Path, slow_disk: threading.Semaphore, monkeypatch: pytest.MonkeyPatch, available: int, copies: int
) -> None:
    """Otherwise a save waits until the one before is on disk; a third always does."""
    monkeypatch.setattr(background_writer, "available_memory", lambda: available)
    writer, paths, taken = BackgroundWriter(), [checkpoint.path_for(tmp_path, k) for k in range(3)], list[Path]()
    state = {"replay": filled(1000).state_dict()}

    def save_all() -> None:
        for path in paths:
            writer.save(path, state, keep=9)
            taken.append(path)

    saving = threading.Thread(target=save_all, daemon=True)
    saving.start()
    saving.join(0.3)  # enough time for all, if none waited
    assert saving.is_alive() and taken == paths[:copies] and checkpoint.listed(tmp_path) == []
    slow_disk.release(1_000)
    saving.join(60)
    writer.wait()
    assert taken == paths
    for path in paths:
        assert equal(checkpoint.load(path), state) == []


def test_a_disk_that_is_full_at_any_write(tmp_path: Path) -> None:
    """The previous checkpoint stays, nothing else is left, and with free space the next one is complete."""
    replay, writer, path = filled(1000), BackgroundWriter(), tmp_path / "x.pt"
    checkpoint.save(path, {"n": 1})

    def save(room: int) -> int:
        """Save with room for this number of writes, and return the number of writes."""
        done = 0

        def full(file: Path) -> None:
            nonlocal done
            if done == room:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            done += 1

        with watched(tmp_path) as disk:
            disk.refuse_write = full
            writer.save(path, replay.state_dict())
            writer.wait()
        return done

    for room in range(needed := save(-1)):
        checkpoint.save(path, {"n": room})
        with error_about(CheckpointError, path, "cannot be written (No space left on device)", hint="runs=FOLDER"):
            save(room)
        assert checkpoint.load(path) == {"n": room} and list(tmp_path.iterdir()) == [path]
        writer = BackgroundWriter()
    assert save(needed) == needed > 5 and equal(checkpoint.load(path), copied(replay.state_dict())) == []


def test_a_copy_is_what_was_there() -> None:
    state = {"a": torch.zeros(3), "b": [1, (torch.ones(2, requires_grad=True), "x")], "c": None}
    found = copied(state)
    state["a"] += 1
    assert found["a"].tolist() == [0, 0, 0] and found["b"][1][1] == "x" and found["c"] is None
    assert found["b"][1][0].tolist() == [1, 1] and not found["b"][1][0].requires_grad


def test_a_copy_has_the_bits_and_the_order_of_its_tensors_and_nothing_beside_them() -> None:
    of_any_kind = [
        torch.zeros(shape, dtype=kind) for shape in ((), (0, 3), (2, 3)) for kind in (torch.int64, torch.bfloat16)
    ]
    tensors = [*of_any_kind, torch.arange(12.0).view(3, 4).T, torch.arange(100)[3:5], torch.ones(1).expand(4, 2)]
    for tensor, found in zip(tensors, copied(tensors), strict=True):
        assert found.equal(tensor) and found.dtype == tensor.dtype and found.untyped_storage().nbytes() == tensor.nbytes
        assert found.stride() == tensor.stride() or tensor.stride() == (0, 0)


@pytest.mark.parametrize("kind", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_a_checkpoint_is_what_was_there(tmp_path: Path, kind: str) -> None:
    """Also of a GPU; all of it can be loaded on a machine without one."""
    device = torch.device(kind)
    replay, writer = ReplayBuffer(NStepTransitions, 10_000, 2, device, seed=1), BackgroundWriter()
    replay.add(rows(0, 13_000))
    weights = torch.ones(1000, device=device)
    before = copied(replay.state_dict())
    writer.save(tmp_path / "x.pt", {"replay": replay.state_dict(), "weights": weights})
    weights += 1
    replay.add(rows(13_000, 500))
    writer.wait()
    state = checkpoint.load(tmp_path / "x.pt")
    assert state["weights"].tolist() == [1.0] * 1000
    assert equal(state["replay"], before) == []


# One evaluation on the way, and everything else minimal.
QUICK = ("episodes=96", "evaluation.every_episodes=64", "checkpoint.every_episodes=64", "network.hidden=[8]")


class KilledError(Exception):
    """Like `kill -9`: no checkpoint is written."""


def arguments(runs: Path, *more: str) -> list[str]:
    return small(runs, *QUICK, *more)


def best_of(runs: Path) -> Path:
    return folder(runs) / "checkpoints" / checkpoint.BEST


@contextmanager
def killed_after_the_first_evaluation(path: Path, without_checkpoints: bool = True) -> Iterator[None]:
    step = DqnTrainer.step

    def until_there(trainer: DqnTrainer) -> None:
        step(trainer)
        if trainer.counters.evaluated > 0:
            trainer._folder.writer.wait()
            raise KilledError

    with pytest.MonkeyPatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(DqnTrainer, "step", until_there)
        if without_checkpoints:
            patch.setattr(RunFolder, "save_checkpoint", lambda *_: Future())
        yield
    assert path.exists()


def left_by_a_start_without_checkpoint(runs: Path) -> None:
    """Write the best network of a start with the settings of `arguments`, with an unbeatable score."""
    with killed_after_the_first_evaluation(best_of(runs)):
        main(arguments(runs))
    assert not checkpoint.listed(folder(runs) / "checkpoints")
    checkpoint.save(best_of(runs), checkpoint.load(best_of(runs)) | {"score": 2.0, "least": 2.0})


@pytest.mark.parametrize("other", ["learner.lr=0.01", "network.hidden=[16]"])
def test_the_best_network_of_a_start_without_checkpoint_is_not_that_of_the_next(
    tmp_path: Path, other: str, trained_run: TrainedRuns, capfd: pytest.CaptureFixture[str]
) -> None:
    left_by_a_start_without_checkpoint(tmp_path)
    before = best_of(tmp_path).read_bytes()
    capfd.readouterr()
    assert main(arguments(tmp_path, other)) == 0
    clean = trained_run(*QUICK, other)
    assert read_results(folder(tmp_path)) == read_results(clean)
    found, same = (checkpoint.load(each / "checkpoints" / checkpoint.BEST) for each in (folder(tmp_path), clean))
    assert found["score"] == same["score"] < 2 and found["run"] != same["run"]
    (aside,) = best_of(tmp_path).parent.glob("best.pt.*")
    assert aside.read_bytes() == before
    assert [line for line in capfd.readouterr().err.splitlines() if aside.name in line] != []


def test_a_run_keeps_its_id_and_its_best_network(tmp_path: Path) -> None:
    with killed_after_the_first_evaluation(best_of(tmp_path), without_checkpoints=False):
        main(arguments(tmp_path))
    state = checkpoint.load(best_of(tmp_path))
    checkpoint.save(best_of(tmp_path), state | {"score": 2.0, "least": 2.0})
    assert main(arguments(tmp_path)) == 0
    newest = checkpoint.load(checkpoint.listed(best_of(tmp_path).parent)[0])
    assert checkpoint.load(best_of(tmp_path))["score"] == 2.0 and newest["run"] == state["run"] != ""
    assert [start["run"] for start in read_launches(folder(tmp_path))] == [newest["run"]] * 2


def test_the_table_of_a_complete_run_is_never_of_another_network(tmp_path: Path, trained_run: TrainedRuns) -> None:
    """Even one of another shape, copied into its folder."""
    run, other = trained_run(*QUICK, runs=tmp_path), trained_run(*QUICK, "network.hidden=[16]")
    expected = read_results(run)
    best_of(tmp_path).write_bytes((other / "checkpoints" / checkpoint.BEST).read_bytes())
    assert main(arguments(tmp_path)) == 0
    found = read_results(run)
    assert found is not None and expected is not None and found.keys() == expected.keys()
    assert len(list(best_of(tmp_path).parent.glob("best.pt.*"))) == 1 and not best_of(tmp_path).exists()


def test_what_a_start_without_checkpoint_wrote_of_itself_is_gone(tmp_path: Path) -> None:
    """Its rows, points and entry among the starts; results of another run are renamed."""
    left_by_a_start_without_checkpoint(tmp_path)
    with (folder(tmp_path) / "metrics.csv").open("a") as file:
        file.write("77,\n")
    for _ in range(2):
        about = {"id": "0" * 16, "checkpoint": "episode_000000000064.pt", "env_steps": 2560}
        (folder(tmp_path) / "results.json").write_text(json.dumps({"_run": about, "random": {}}))
        with killed_after_the_first_evaluation(best_of(tmp_path)):
            main(arguments(tmp_path))
    assert len(read_launches(folder(tmp_path))) == 1
    assert "\n77," not in (folder(tmp_path) / "metrics.csv").read_text()
    asides = sorted((path.name for path in folder(tmp_path).glob("results*")), key=len)
    assert asides == [f"results.json.{'0' * 16}", f"results.json.2.{'0' * 16}"]


def test_results_go_when_their_run_goes_on(tmp_path: Path, trained_run: TrainedRuns) -> None:
    run = trained_run(*QUICK, runs=tmp_path)
    written = (run / "results.json").read_text()
    assert json.loads(written)["_run"]["env_steps"] == 96 * 40
    with stopped_after_a_step():
        assert main(arguments(tmp_path, "episodes=192")) == 128 + signal.SIGTERM
    assert read_results(run) is None and not (run / "results.json").exists()
    assert (run / "results.json.3840").read_text() == written
    assert main(arguments(tmp_path, "episodes=192")) == 0
    newest = checkpoint.listed(run / "checkpoints")[0]
    about = {"id": checkpoint.load(newest)["run"], "checkpoint": newest.name, "env_steps": 192 * 40}
    assert json.loads((run / "results.json").read_text())["_run"] == about


@contextmanager
def stopped_after_a_step() -> Iterator[None]:
    step = DqnTrainer.step

    def then_stop(trainer: Any) -> None:
        step(trainer)
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DqnTrainer, "step", then_stop)
        yield
