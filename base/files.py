"""Atomic file writes: each file is written under a temporary name, synced, and renamed over the old one."""

import csv
import errno
import hashlib
import itertools
import os
import re
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

SUFFIX = ".tmp"  # of incomplete files
# Errors of file systems that cannot sync a folder; nothing more can be done for a rename there.
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.EBADF, errno.ENOSYS}
_numbers = itertools.count()
_TEMPORARY = re.compile(rf"\..+\.[0-9]+\.[0-9]+{re.escape(SUFFIX)}")  # names made by `temporary_beside`
_HOME = re.compile(r"(?<![^\s\[\](){},:='\"])~(?=/)")  # where a path begins
_LONG = 3600.0  # seconds without a change after which a temporary file is abandoned


def with_home(text: str) -> str:
    """Expand each `~` that begins a path to the home folder, as in `[~/a,search:~/b]`."""
    return _HOME.sub(lambda _: os.path.expanduser("~"), text)  # noqa: PTH111 - without a home folder, `~` stays


def write_atomic(path: Path, content: str | bytes) -> None:
    """Replace the file `path` with `content`, text as UTF-8. Raises OSError naming `path`, which is then unchanged."""
    with replacing(path) as temporary:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path, allowed: Callable[[], None] = lambda: None) -> Iterator[Path]:
    """Yield a temporary path to write to; on exit the file is synced and renamed to `path`.

    `allowed` is called just before the rename. Any error, raised by it or by the caller, deletes the temporary file and
    leaves `path` unchanged. Raises OSError naming `path`.
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
    """Make an OSError name this file instead of its temporary file, or of no file at all."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def temporary_beside(path: Path) -> Path:
    """Return a temporary name for `path`, unique among all processes on all machines."""
    return path.with_name(f".{path.name}.{_host()}.{os.getpid()}.{next(_numbers)}{SUFFIX}")


def _host() -> str:
    return socket.gethostname().replace("/", "_")


def delete_left_over(folder: Path) -> None:
    """Delete, if possible, temporary files of this process, of ended ones on this machine, and any an hour old."""
    others = []
    for path in folder.glob(f".*{SUFFIX}"):
        if not _TEMPORARY.fullmatch(path.name):
            continue  # another program's, such as a synchroniser's
        if not _has_ended(path):
            others.append(path)
            continue
        with suppress(OSError):
            path.unlink()
    with suppress(OSError):  # the file is already gone, or the disk is full
        now = _now(folder) if others else 0.0
        for path in others:
            if now - path.stat().st_mtime > _LONG:
                path.unlink()


def _has_ended(temporary: Path) -> bool:
    """Return whether a temporary file's process is this one, or ran on this machine and has ended."""
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
    """Return the time by the file system's clock."""
    path = temporary_beside(folder / "now")
    try:
        path.touch()
        return path.stat().st_mtime
    finally:
        path.unlink(missing_ok=True)


def make_folder(path: Path) -> None:
    """Create a folder and its parents, synced to disk. Raises OSError."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(exist_ok=True)
    sync_folder(path.parent)


def create_unused(path: Path, make: Callable[[Path], object]) -> Path:
    """Create a file or folder at `path`, or at a numbered variant if that exists; return its path. Raises OSError.

    `make` must raise FileExistsError if its path exists, so that concurrent processes on any machines get their own.
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
    """Return the names in a folder, none if it is missing. Raises OSError if it is unreadable, unlike `Path.glob`."""
    try:
        return [path.name for path in folder.iterdir()]
    except (FileNotFoundError, NotADirectoryError):
        return []


@dataclass(frozen=True)
class NumberedFiles:
    """Naming scheme of numbered files, which excludes synchronisers' copies like `episode_000000020000 (1).pt`."""

    prefix: str
    digits: int
    suffix: str

    def name(self, number: int) -> str:
        """Return the name of the file with this number."""
        return f"{self.prefix}{number:0{self.digits}d}{self.suffix}"

    def newest_first(self, folder: Path) -> list[Path]:
        """Return the matching files in a folder, highest number first. Raises OSError if it cannot be read."""
        pattern = re.compile(rf"{re.escape(self.prefix)}([0-9]+){re.escape(self.suffix)}")
        found = [(int(match[1]), name) for name in names_in(folder) if (match := pattern.fullmatch(name))]
        return [folder / name for number, name in sorted(found, reverse=True) if name == self.name(number)]


def code_digest(place: Path = Path(__file__).parents[1]) -> str:
    """Return the digest of the Python files in a folder, by default busso's, or of one file, as they are on disk now.

    An update may change them while a process runs.
    """
    # Path.glob follows no links.
    found = sorted(glob(f"{place}/**/*.py", recursive=True)) if place.is_dir() else [str(place)]  # noqa: PTH207
    return hashlib.sha256(b"\0".join(Path(file).read_bytes() for file in found)).hexdigest()


def rename_aside(path: Path, suffix: str) -> Path:
    """Append `suffix` to a file's name, after a number if that is taken, and return its new path."""
    numbers = itertools.chain([""], (f".{number}" for number in itertools.count(2)))
    aside = next(each for number in numbers if not (each := path.with_name(path.name + number + suffix)).exists())
    return path.replace(aside)


def sync_file(path: Path) -> None:
    """Flush a file to disk, so that it survives a crash of the machine."""
    _sync(os.open(path, os.O_RDONLY))


def sync_folder(folder: Path) -> None:
    """Flush renames in a folder to disk, if the file system can, so that they survive a crash of the machine."""
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
    """Write rows, which may lack columns, to a CSV file atomically; `columns` come first, even without rows."""
    with replacing(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(
            file, list(dict.fromkeys([*columns, *(key for row in rows for key in row)])), restval=""
        )
        writer.writeheader()
        writer.writerows(rows)
