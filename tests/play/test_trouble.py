"""Files that cannot be written during a game: an error is shown, the game continues, and nothing else is lost."""

import errno
import os
import resource
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from busso.play.table.session import Session, append_lines
from tests.play.people import ROOT, choice, replayed, sit_down, steady, talk


@contextmanager
def files_up_to(size: int) -> Iterator[None]:
    """Limit the file size, like a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_lines_are_added_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "games.jsonl"
    append_lines(path, ["one", "two"])
    with files_up_to(10), pytest.raises(OSError, match="games") as error:
        append_lines(path, ["three"])
    assert path.read_text() == "one\ntwo\n" and error.value.filename == str(path)
    append_lines(path, ["four"])
    assert path.read_text() == "one\ntwo\nfour\n"


def test_what_fails_leaves_the_lines_of_another_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other table starts writing after this one's write has failed and before it is undone."""
    path, others = tmp_path / "games.jsonl", list[subprocess.Popen[str]]()
    append_lines(path, ["one"])

    def failing_disk(_: int) -> None:
        if threading.current_thread() is not threading.main_thread():
            return  # called by a thread of an earlier test, such as one that holds a lock
        script = (
            "from pathlib import Path; from busso.play.table.session import append_lines; print();"
            f"append_lines(Path({str(path)!r}), ['other'])"
        )
        other = subprocess.Popen(
            [sys.executable, "-uc", script],
            env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        others.append(other)
        assert other.stdout is not None and other.stdout.readline() == "\n"
        time.sleep(0.3)  # a table that does not wait would write now
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched, pytest.raises(OSError, match="Input/output"):
        patched.setattr("busso.play.table.session.os.fsync", failing_disk)
        append_lines(path, ["mine"])
    assert others[0].wait(20) == 0
    assert path.read_text() == "one\nother\n"


@pytest.mark.parametrize("more", [(), ("match=11",)])
def test_records_that_could_not_be_written_follow_with_the_next(more: tuple[str, ...], tmp_path: Path) -> None:
    record = tmp_path / "games.jsonl"
    session = sit_down("seed=7", f"record={record}", *more)

    def play() -> None:
        while not session.table.hand.over:
            session.play(choice(session.table)) if session.table.person_to_move else session.reply()

    with files_up_to(10):
        play()
        trouble = session.take_error()
        assert trouble is not None and trouble.filename == str(record) and session.take_error() is None
        with pytest.raises(OSError, match="too large"):
            session.leave()
    assert record.read_text() == ""
    session.deal()
    play()
    assert len(replayed(record)) == 2


def test_in_lines_too_the_game_goes_on(tmp_path: Path) -> None:
    """Two games that cannot be written; their loss is reported on leaving."""
    record, asked = tmp_path / "games.jsonl", []

    def answer(session: Session) -> str:
        asked.append(session.table.number)
        return steady(session)

    with files_up_to(10), pytest.raises(OSError, match="games"):
        talk(answer, "game=sette_mezzo", "seed=7", f"record={record}", "games=2")
    assert set(asked) == {0, 1} and record.read_text() == ""
