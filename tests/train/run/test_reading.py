"""Unreadable files, temporarily or for good, and files of another version: no data is lost."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from busso.train.__main__ import main
from busso.train.learner.replay_buffer import ReplayBuffer
from busso.train.rollout.transitions import NStepTransitions
from busso.train.run import checkpoint
from busso.train.run.background_writer import BackgroundWriter
from busso.train.run.checkpoint import OtherFormatError, UnreadableError
from busso.train.run.launches import FILE, add_launch, read_launches
from tests.disk import watched
from tests.errors import error_about, key_of
from tests.train.rows import rows
from tests.train.runs import TrainedRuns, equal, small

NUMBERS = (errno.ESTALE, errno.ENOENT)
Fail = Callable[[Path], None]


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "WAITS", (0.0, 0.0))


def failing(part: str, times: int, number: int = errno.EIO, after: int = 0) -> Fail:
    """Fail operations on files with `part` in their path `times` times, after `after` successes."""
    done = 0

    def refuse(path: Path) -> None:
        nonlocal done
        if part in str(path):
            done += 1
            if after < done <= after + times:
                raise OSError(number, os.strerror(number), str(path))

    return refuse


def saved(folder: Path, *inserted: int) -> dict[str, object]:
    """Save a checkpoint of a buffer after each of these numbers of rows; return the last state."""
    replay, writer = ReplayBuffer(NStepTransitions, 400, 2, torch.device("cpu"), seed=1), BackgroundWriter()
    for number in inserted:
        replay.add(rows(replay.inserted, number - replay.inserted))
        state = {"n": number, "table": torch.arange(number), "replay": replay.state_dict()}
        writer.save(checkpoint.path_for(folder, number), state, keep=3)
    writer.wait()
    return state


def everything(folder: Path) -> dict[str, bytes]:
    """Return all files but the log."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name not in ("train.log", ".lock"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_a_read_that_fails_once_is_no_damage(tmp_path: Path) -> None:
    """Of the last line, or of the whole file."""
    before = saved(tmp_path, 150, 350)
    reads = 0

    def loaded(refuse: Fail) -> int:
        nonlocal reads
        reads = 0

        def counted(path: Path) -> None:
            nonlocal reads
            reads += 1
            refuse(path)

        with watched(tmp_path) as disk:
            disk.refuse_read = counted
            found = checkpoint.load_newest(tmp_path)
            assert found is not None and found.problems == {}
            assert equal(found.state, before) == []
        return reads

    for after in range(count := loaded(lambda path: None)):
        assert loaded(failing("", 1, after=after)) > after
    assert count == 3  # two last lines, and the latest file


def newest(folder: Path) -> checkpoint.LoadedCheckpoint | None:
    return checkpoint.LoadedCheckpoint(path := checkpoint.path_for(folder, 350), checkpoint.load(path), {})


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("load", [checkpoint.load_newest, checkpoint.load_best, newest])
def test_what_cannot_be_opened_ends_the_start_and_nothing_else(
    tmp_path: Path, load: Callable[[Path], checkpoint.LoadedCheckpoint | None], number: int
) -> None:
    """Including a file that is listed in its folder but not found."""
    saved(tmp_path, 150, 350)
    before, part = everything(tmp_path), "episode_000000000350"
    with watched(tmp_path) as disk:
        disk.refuse_open = failing(part, 1, number)
        found = load(tmp_path)
        assert found is not None and found.state["n"] == 350 and found.problems == {}
        disk.refuse_open = failing(part, 1_000, number)
        with pytest.raises(UnreadableError) as caught:
            load(tmp_path)
    error = caught.value
    assert error.exit_code == 75 and part in error.key and "\n" not in str(error) and error.hint
    assert everything(tmp_path) == before


def test_a_folder_that_cannot_be_read_is_not_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise the run would start over and overwrite its checkpoints."""
    saved(tmp_path, 150)
    failed = failing(str(tmp_path), 1_000)
    listing = os.listdir

    def listed(path: Path) -> list[str]:
        failed(Path(path))
        return listing(path)

    monkeypatch.setattr(os, "listdir", listed)
    with error_about(UnreadableError, tmp_path, "Input/output error"):
        checkpoint.load_newest(tmp_path)


def test_too_little_memory_is_no_damage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved(tmp_path, 150)
    for error in (MemoryError("no"), RuntimeError("DefaultCPUAllocator: can't allocate memory: 9 bytes")):

        def fails(*_: object, error: Exception = error, **__: object) -> None:
            raise error

        monkeypatch.setattr(torch, "load", fails)
        with pytest.raises(MemoryError):
            checkpoint.load_newest(tmp_path)


FILES = {"the newest checkpoint": "episode_000000000256", "the best network": "best.pt", "the curves": "metrics.csv"}


@pytest.fixture
def run(tmp_path: Path, trained_run: TrainedRuns) -> Iterator[Path]:
    """Copy a complete run into a folder whose parent is `tmp_path`."""
    yield trained_run(runs=tmp_path)


def goes_on(runs: Path) -> int:
    return main(small(runs, "episodes=288"))


@pytest.mark.parametrize("name", FILES)
def test_a_run_whose_file_cannot_be_read_ends_with_75_and_changes_nothing(
    tmp_path: Path, run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = everything(run)
    # Written before the curves are opened.
    composed = {f".hydra/{each}.yaml" for each in ("config", "hydra", "overrides")}
    written = {"config.yaml", "starts.json", *composed} if name == "the curves" else set()
    with watched(run) as disk:
        disk.refuse_read = failing(FILES[name], 1_000)
        assert goes_on(tmp_path) == 75
    (line,) = (line for line in capsys.readouterr().err.splitlines() if line.startswith("error: "))
    assert FILES[name] in key_of(f"{line}\n") and "nothing was changed" in line
    after = everything(run)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} <= written


@pytest.mark.parametrize("name", FILES)
def test_a_run_whose_file_cannot_be_read_once_goes_on(
    tmp_path: Path, run: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    best = run / "checkpoints" / checkpoint.BEST
    checkpoint.save(best, checkpoint.load(best) | {"score": 2.0, "least": 2.0})
    with watched(run) as disk:
        disk.refuse_read = failing(FILES[name], 1)
        assert goes_on(tmp_path) == 0
    text = capsys.readouterr().err
    assert "episode_000000000256.pt: 256 episodes" in text and "damaged" not in text and "starts empty" not in text
    assert checkpoint.load(best)["score"] == 2.0, "no later network is better"
    assert (run / "metrics.csv").read_text().startswith("env_steps") and not list(run.rglob("*.damaged"))


def test_a_best_network_that_is_damaged_is_set_aside_with_a_warning(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best = run / "checkpoints" / checkpoint.BEST
    for number, content in enumerate((b"one", b"another")):
        best.write_bytes(content)
        assert main(small(tmp_path, f"episodes={288 + 32 * number}", "seed=1")) == 0
        assert f"{best}: not a checkpoint of busso" in capsys.readouterr().err and checkpoint.load(best)
    assert sorted(path.read_bytes() for path in best.parent.glob("best.*.damaged")) == [b"another", b"one"]


def test_starts_that_cannot_be_read_are_not_begun_anew(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    add_launch(tmp_path, "one", "id")
    with watched(tmp_path) as disk:
        disk.refuse_read = failing(FILE, 1)
        add_launch(tmp_path, "two", "id")
        disk.refuse_read = failing(FILE, 1_000)
        add_launch(tmp_path, "three", "id")
    assert [start["learner"] for start in read_launches(tmp_path)] == ["one", "two"]
    assert f"{tmp_path / FILE}: cannot be read" in caplog.text


def of_another_version(path: Path) -> None:
    """Rewrite a file as another version of busso would."""
    path.write_bytes(path.read_bytes().replace(checkpoint.MAGIC, b"busso-checkpoint 6 "))


OTHER: dict[str, Callable[[Path], Path]] = {
    "the newest checkpoint": lambda folder: checkpoint.listed(folder)[0],
    "an older checkpoint": lambda folder: checkpoint.listed(folder)[1],
    "the best network": lambda folder: folder / checkpoint.BEST,
    "one that was set aside": lambda folder: checkpoint.set_aside(checkpoint.listed(folder)[1]),
}


def test_a_run_of_another_version_is_refused_and_left_alone(
    tmp_path: Path, run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = checkpoint.listed(run / "checkpoints")[1]
    of_another_version(path)
    before = everything(run)
    assert goes_on(tmp_path) == 2
    text = capsys.readouterr().err
    assert key_of(text) == str(path) and "format 6 of another busso version; this one reads 5" in text
    assert everything(run) == before


@pytest.mark.parametrize("what", OTHER)
def test_nothing_is_deleted_beside_a_checkpoint_of_another_version(tmp_path: Path, what: str) -> None:
    saved(tmp_path, 150, 250, 350)
    checkpoint.save(tmp_path / checkpoint.BEST, {"n": 1})
    of_another_version(OTHER[what](tmp_path))
    before = everything(tmp_path)
    checkpoint.prune(tmp_path, 1)
    assert everything(tmp_path) == before


@pytest.mark.parametrize(
    ("line", "refused"),
    [
        (b"busso-checkpoint 6 x", True),
        (b"busso-checkpoint 4 x", True),
        (b"busso-checkpoint 0 x", True),
        (b"busso-checkpoint 12 x", True),
        (b"busso-checkpoint x", False),
        (b"busso-checkpoinu 6 x", False),
        (b"busso-checkpoint 5 x", False),
        (b"", False),
    ],
)
def test_what_is_of_another_version(tmp_path: Path, line: bytes, refused: bool) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(b"PK\3\4 and more\n" + line + b"\n")
    with error_about(OtherFormatError if refused else checkpoint.CheckpointError, path):
        checkpoint.load(path)
