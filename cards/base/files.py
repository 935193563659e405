"""Files that are written whole or not at all: written beside the old one, synced, then renamed over it."""

from __future__ import annotations

import csv
import errno
import itertools
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SUFFIX = ".tmp"  # of what is not whole yet
# Answers of file systems that cannot sync a folder; on these a rename is as safe as they make it.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.ENOSYS}
_numbers = itertools.count()
_TEMPORARY = re.compile(rf"\..+\.[0-9]+\.[0-9]+{re.escape(SUFFIX)}")  # as `temporary_beside` makes it
_HOME = re.compile(r"(?<![^\s\[\](){},:='\"])~(?=/)")  # where a path begins
_LONG = 3600.0  # seconds after which no process still writes to a temporary file


def with_home(text: str) -> str:
    """Return the text with the home folder in place of `~`, where that begins a path, as in `[~/a,search:~/b]`."""
    return _HOME.sub(lambda _: os.path.expanduser("~"), text)  # noqa: PTH111 - what there is no home for stays


def write_atomic(path: Path, content: str | bytes) -> None:
    """Replace the file `path` with `content`, text as UTF-8. Raises OSError with the name; `path` is then as it was."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path, allowed: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """A path beside `path` to write a file to; at the end it is synced and takes the place of `path`.

    An error deletes it and leaves `path` as it was: `allowed` may raise one, just before. Raises OSError with the name
    of `path`.
    """
    temporary = temporary_beside(path)
    try:
        with errors_name(path):
            yield temporary
            sync_file(temporary)
            allowed()
            temporary.replace(path)
            sync_folder(path.parent)
    finally:
        with suppress(OSError):
            temporary.unlink()


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Make an OSError name this file: the system names the temporary file beside it, or none that is already open."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def temporary_beside(path: Path) -> Path:
    """A new name for `path` until it is whole: no other process of any machine has the same one."""
    return path.with_name(f".{path.name}.{_host()}.{os.getpid()}.{next(_numbers)}{SUFFIX}")


def _host() -> str:
    return socket.gethostname().replace("/", "_")


def delete_left_over(folder: Path) -> None:
    """Delete the temporary files in a folder that no process will finish.

    These are of this process, of others of this machine that have ended, and those that have not changed for an hour.
    What cannot be deleted stays.
    """
    others = []
    for path in folder.glob(f".*{SUFFIX}"):
        if not _TEMPORARY.fullmatch(path.name):
            continue  # of another program, such as a synchroniser
        if not _has_ended(path):
            others.append(path)
            continue
        with suppress(OSError):
            path.unlink()
    with suppress(OSError):  # of a file that is gone meanwhile, or of a disk that is full
        now = _now(folder) if others else 0.0
        for path in others:
            if now - path.stat().st_mtime > _LONG:
                path.unlink()


def _has_ended(temporary: Path) -> bool:
    """Return whether the process that a name of `temporary_beside` contains is this one or no longer runs here."""
    before, _, numbers = temporary.name.removesuffix(SUFFIX).rpartition(f".{_host()}.")
    pid, _, number = numbers.partition(".")
    if not (before and pid.isdecimal() and number.isdecimal()):
        return False
    return int(pid) == os.getpid() or not is_running(int(pid))


def is_running(pid: int) -> bool:
    """Return whether a process with this number runs on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # another user's
    return True


def _now(folder: Path) -> float:
    """Return the time by the clock of this file system."""
    path = temporary_beside(folder / "now")
    try:
        path.touch()
        return path.stat().st_mtime
    finally:
        path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Make a folder and those that it lies in; their names survive a failure of the machine. Raises OSError."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def make_free(path: Path, make: Callable[[Path], object]) -> Path:
    """Make a file or folder at `path`, or with a number in its name where that is taken; return its path.

    `make` raises FileExistsError where there is one: of several processes, on any machines, each gets its own. OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    free, numbers = path, itertools.count(2)
    while True:
        try:
            make(free)
        except FileExistsError:
            free = path.with_name(f"{path.stem}-{next(numbers)}{path.suffix}")
        else:
            return free


def names_in(folder: Path) -> list[str]:
    """The names in a folder, none where there is no folder. Raises OSError when it cannot be read.

    `Path.glob` takes a folder that cannot be read for an empty one.
    """
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


@dataclass(frozen=True)
class NumberedFiles:
    """Files named after a number, for the code that writes them and the code that finds them.

    Copies by file managers and synchronisers, such as `episode_000000020000 (1).pt`, are not among them.
    """

    prefix: str
    digits: int
    suffix: str

    def name(self, number: int) -> str:
        """Return the name of the file with this number."""
        return f"{self.prefix}{number:0{self.digits}d}{self.suffix}"

    def newest_first(self, folder: Path) -> list[Path]:
        """Return those in a folder, the highest number first. Raises OSError when it cannot be read."""
        pattern = re.compile(rf"{re.escape(self.prefix)}([0-9]+){re.escape(self.suffix)}")
        found = [(int(match[1]), name) for name in names_in(folder) if (match := pattern.fullmatch(name))]
        return [folder / name for number, name in sorted(found, reverse=True) if name == self.name(number)]


def rename_aside(path: Path, suffix: str) -> Path:
    """Rename a file so that its name ends with `suffix`, and no other file is lost; returns its new path."""
    numbers = itertools.chain([""], (f".{number}" for number in itertools.count(2)))
    aside = next(each for number in numbers if not (each := path.with_name(path.name + number + suffix)).exists())
    return path.replace(aside)


def sync_file(path: Path) -> None:
    """Flush the content of a file to disk, so that it survives a failure of the machine."""
    _sync(os.open(path, os.O_RDONLY))


def sync_folder(folder: Path) -> None:
    """Flush renames in a folder to disk, to survive a failure of the machine, where the file system can do that."""
    try:
        _sync(os.open(folder, os.O_RDONLY))
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def _sync(descriptor: int) -> None:
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> None:
    """Rows as a file for other programs, whole or not at all; a row may lack columns.

    `columns` come first; they are there even without rows.
    """
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(
            file, list(dict.fromkeys([*columns, *(key for row in rows for key in row)])), restval=""
        )
        writer.writeheader()
        writer.writerows(rows)
