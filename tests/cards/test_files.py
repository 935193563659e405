import errno
import os
import subprocess
import time
from functools import partial
from pathlib import Path

import pytest

from busso.base import files
from busso.base.files import (
    NumberedFiles,
    create_unused,
    delete_left_over,
    replacing,
    sync_folder,
    temporary_beside,
    write_atomic,
)


def test_a_file_gets_its_new_content(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a.txt", "accuso è buono\n")
    assert (tmp_path / "a.txt").read_bytes() == "accuso è buono\n".encode()
    write_atomic(tmp_path / "a.txt", b"\x00\xff")
    assert (tmp_path / "a.txt").read_bytes() == b"\x00\xff"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError("half way"), KeyboardInterrupt(), OSError(errno.ENOSPC, "no space")])
def test_what_fails_half_way_leaves_the_file_as_it_was(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(type(error)), replacing(path) as temporary:
        temporary.write_text("half")
        raise error
    assert path.read_text() == "before" and [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_names_the_file_and_not_the_one_beside_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_atomic(tmp_path / "missing" / "a.txt", "text")
    assert caught.value.filename == str(tmp_path / "missing" / "a.txt")


@pytest.mark.parametrize(("number", "raised"), [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True)])
def test_a_file_system_that_cannot_sync_folders_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, raised: bool
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", refuse)
    if raised:
        with pytest.raises(OSError, match="Input/output error"):
            sync_folder(tmp_path)
    else:
        sync_folder(tmp_path)


def test_only_what_no_process_will_finish_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    own, numbers = temporary_beside(tmp_path / "own"), f".{os.getpid()}.7.tmp"
    gone = own.with_name(own.name.replace(f".{os.getpid()}.", f".{ended.pid}."))
    living = own.with_name(own.name.replace(f".{os.getpid()}.", f".{os.getppid()}."))
    monkeypatch.setattr(files.socket, "gethostname", lambda: "node2.of.a.cluster")
    there, old = temporary_beside(tmp_path / "there"), temporary_beside(tmp_path / "old")
    monkeypatch.undo()
    strange, notes = tmp_path / f".x{numbers}", tmp_path / "notes.txt"
    synchronised = tmp_path / ".syncthing.notes.txt.tmp"
    for path in (own, gone, living, there, old, strange, notes, synchronised):
        path.write_text("half")
    hours_ago = time.time() - 2 * 3600
    for path in (old, notes, synchronised):
        os.utime(path, (hours_ago, hours_ago))
    delete_left_over(tmp_path)
    assert set(tmp_path.iterdir()) == {living, there, strange, notes, synchronised}


def test_numbered_files_are_found_by_the_name_that_they_were_written_by(tmp_path: Path) -> None:
    numbered = NumberedFiles("part_", 3, ".pt")
    assert numbered.newest_first(tmp_path / "missing") == []
    for number in (7, 1000, 999):
        (tmp_path / numbered.name(number)).touch()
    copies = ("part_2000_backup.pt", "part_2000 (1).pt", "part_2000.sync-conflict-20260101-120000-ABCDEFG.pt")
    for name in (*copies, "._part_2000.pt", "part_02000.pt", "part_8.pt", "part_٢٠٠٠.pt", "part_2000xpt", "part_.pt"):
        (tmp_path / name).touch()
    assert [path.name for path in numbered.newest_first(tmp_path)] == ["part_1000.pt", "part_999.pt", "part_007.pt"]


def test_each_of_several_gets_a_name_of_its_own(tmp_path: Path) -> None:
    folders = [create_unused(tmp_path / "new" / "20260101-120000", Path.mkdir).name for _ in range(3)]
    assert folders == ["20260101-120000", "20260101-120000-2", "20260101-120000-3"]
    file = tmp_path / "new" / "a.json"
    file.mkdir()
    assert create_unused(file, partial(Path.touch, exist_ok=False)) == tmp_path / "new" / "a-2.json"
