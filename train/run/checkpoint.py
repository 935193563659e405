"""Checkpoints: written atomically, verified before use, loaded without running code.

A file is the output of `torch.save`, a zip file, with the line `busso-checkpoint 5 <sha256>` as its comment. The
checksum covers the archive without a comment, so `torch.load` can open the file, and any flipped bit is detected. A
file of another format is refused, and nothing in its folder is renamed or deleted. A damaged file is renamed, and the
one before it is used. An unreadable file may be intact: after retries the run ends with exit code 75, and all files
stay.

Checkpoints, the best network and the results of a run have its id.
A start that leaves no checkpoint counts as a separate run: the next start may use other settings.
"""

from __future__ import annotations

import hashlib
import io
import logging
import os
import re
import time
import zipfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, TypeVar

import torch

from busso.base.errors import EXIT_REQUEUE, UserError
from busso.base.files import delete_left_over, names_in, rename_aside, replacing
from busso.command.settings.checks import SettingsError
from busso.train.run import results
from busso.train.settings.run import CHECKPOINTS

T = TypeVar("T")
WAITS = (0.2, 1.0, 4.0)  # seconds between two attempts; longer outages are left to the next start
MAGIC = b"busso-checkpoint 5 "
_LONGEST = 256  # bytes, more than the line's length
MOST_VALUES = 2_000_000  # other than tensors; shared values count each time
DEEPEST = 64  # nesting depth of dictionaries and lists
log = logging.getLogger("train")
BEST = "best.pt"
DAMAGED = ".damaged"  # suffix of damaged files that were set aside
_PLAYING = ("acting", "evaluating")  # weights for play in a state; they follow all learned ones
RUN_KEY = "run"  # key of the id in the states that a run saves


class CheckpointError(UserError):
    """Checkpoint that is missing, damaged or of another run; the message names the file and the remedy."""


class MissingError(CheckpointError):
    """Missing checkpoint."""


class UnreadableError(CheckpointError):
    """Checkpoint that cannot be read now but may be intact."""

    exit_code = EXIT_REQUEUE

    @classmethod
    def because(cls, error: OSError, path: Path) -> UnreadableError:
        """Return the error for an OSError; `path` is used if the OSError names no file."""
        problem = f"cannot be read ({error.strerror or error}); nothing was changed"
        return cls(error.filename or path, problem, "check that the disk is mounted, then repeat the command")


def save(path: Path, state: dict[str, Any], allowed: Callable[[], None] = lambda: None) -> None:
    """Write `state` to a temporary file, sync it and rename it to `path`.

    Raises CheckpointError if writing fails, and whatever `allowed` raises just before the renaming; `path` is then
    unchanged. A view is written with its whole storage.
    """
    try:
        with replacing(path, allowed) as temporary, temporary.open("wb") as file:
            write_archive(file, state)
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise CheckpointError(path, problem, "free some space or choose another disk with runs=FOLDER") from error


def load(path: Path) -> dict[str, Any]:
    """Load a checkpoint onto the CPU.

    Raises CheckpointError if it is damaged or of a diverged network, MissingError if it does not exist, UnreadableError
    if it cannot be read, and OtherFormatError for one of another version.
    """
    try:
        return with_retries(partial(_load, path))
    except OSError as error:
        raise UnreadableError.because(error, path) from None


@dataclass(frozen=True)
class LoadedCheckpoint:
    """Intact checkpoint, and the problems of those preferred to it."""

    path: Path
    state: dict[str, Any]
    problems: dict[Path, str]


def load_newest(folder: Path, first: str | None = None, resuming: bool = True) -> LoadedCheckpoint | None:
    """Return the newest intact checkpoint, or the file named `first` if it exists and is intact.

    Returns None if there are no files. Raises CheckpointError if all are damaged, so that nothing is discarded
    silently; UnreadableError if one that counts cannot be read; and OtherFormatError if one that counts, or with
    `resuming` any, is of another version.
    """
    try:
        return with_retries(partial(_newest, folder, first, resuming))
    except OSError as error:
        raise UnreadableError.because(error, folder) from None


def load_best(folder: Path) -> LoadedCheckpoint | None:
    """Return a run's best checkpoint if it is intact, else the newest intact one. Raises like `load_newest`."""
    return load_newest(folder, first=BEST, resuming=False)


def load_named(path: Path) -> tuple[Path, dict[str, Any]]:
    """Load a checkpoint file or a run folder's best; warn of damaged ones. Raises CheckpointError if none is intact."""
    if not path.is_dir():
        return path, load(path)
    found = load_best(path / "checkpoints")
    if found is None:
        raise CheckpointError(path, "contains no checkpoint", "train it first")
    for problem in found.problems.values():
        log.warning("%s; %s is used", problem, found.path)
    return found.path, found.state


def with_retries(read: Callable[[], T]) -> T:
    """Return the value of `read`, retrying after each of WAITS. Raises its last OSError."""
    for wait in WAITS:
        try:
            return read()
        except OSError:
            time.sleep(wait)
    return read()


def is_missing(path: Path) -> bool:
    """Return whether a file that cannot be opened is missing. Raises OSError if its folder is unreadable."""
    return path.name not in names_in(path.parent)


class OtherFormatError(UserError):
    """File of another version of busso, which must be neither used nor deleted."""


class DamagedError(ValueError):
    """File whose content differs from what was written."""


class Hashing:
    """Write-only file that hashes what is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()
        self.failed: OSError | None = None  # torch raises another error in its place

    def write(self, data: Any) -> int:
        """Write and hash data."""
        self.sha256.update(data)
        try:
            return self._file.write(data)
        except OSError as error:
            self.failed = error
            raise

    def flush(self) -> None:
        """Flush the file."""
        self._file.flush()


def write_archive(file: IO[bytes], state: Any) -> None:
    """Write a complete file. Raises OSError on failure."""
    hashing = Hashing(file)
    try:
        torch.save(state, hashing)  # type: ignore[arg-type]
    except RuntimeError:
        if hashing.failed is not None:
            raise hashing.failed from None
        raise
    file.seek(-2, os.SEEK_END)  # the comment's length, so far two zero bytes
    file.write(_end(hashing.sha256.hexdigest()))


def read_archive(path: Path, file: IO[bytes]) -> bytes:
    """Return a file's content, verified but unparsed, for `torch.load`. Raises DamagedError and OtherFormatError."""
    data = file.read()
    if not _last_line(path, data).startswith(MAGIC):
        raise DamagedError("not a checkpoint of busso, or truncated")
    length = len(_end("0" * 64))
    sha256 = hashlib.sha256(memoryview(data)[:-length])
    sha256.update(bytes(2))
    if data[-length:] != _end(sha256.hexdigest()):
        raise DamagedError("damaged (its checksum does not match)")
    return data


def _last_line(path: Path, data: bytes) -> bytes:
    """Return the last line. Raises OtherFormatError if it names another format."""
    line = [b"", *data[-_LONGEST:].splitlines()][-1]
    found = re.match(rb"busso-checkpoint (\d{1,9}) ", line)
    if found and found[0] != MAGIC:
        number, own = int(found[1]), int(MAGIC.split()[1])
        problem = f"format {number} of another busso version; this one reads {own}"
        raise OtherFormatError(path, problem, "use that version, or start another run with name=...")
    return line


def _end(digest: str) -> bytes:
    """Return the comment, preceded by its length."""
    comment = b"\n" + MAGIC + digest.encode() + b"\n"
    return len(comment).to_bytes(2, "little") + comment


def check_archive(file: IO[bytes], nbytes: int) -> None:
    """Raise ValueError unless the rest of the file is an uncompressed archive, as `torch.save` writes.

    PyTorch's older format allocates as much as a number in the file says. The file position is restored.
    """
    at = file.tell()
    try:
        with zipfile.ZipFile(file) as archive:
            entries = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError):
        raise ValueError("not a PyTorch archive") from None
    finally:
        file.seek(at)
    if any(each.compress_type != zipfile.ZIP_STORED for each in entries):
        raise ValueError("compressed, which checkpoints are not")
    if sum(each.file_size for each in entries) > nbytes:
        raise ValueError("its parts exceed the file")


def check_state(state: Any) -> None:
    """Raise ValueError for tensors larger than their data in the file, and for too many values."""
    left = MOST_VALUES
    waiting = [(state, 0)]
    while waiting:
        value, depth = waiting.pop()
        left -= 1
        if left < 0 or depth > DEEPEST:
            raise ValueError("too many values or levels for a checkpoint")
        if isinstance(value, torch.Tensor):
            _check_tensor(value)
        elif isinstance(value, dict):
            waiting += [(item, depth + 1) for pair in value.items() for item in pair]
        elif isinstance(value, list | tuple | set | frozenset):
            waiting += [(item, depth + 1) for item in value]


def _check_tensor(tensor: torch.Tensor) -> None:
    plain = tensor.layout == torch.strided and tensor.device.type == "cpu"
    if not plain or tensor.numel() * tensor.element_size() > tensor.untyped_storage().nbytes():
        raise ValueError(f"a tensor of {tuple(tensor.shape)} is incomplete")


def not_finite(state: object, path: str = "") -> str | None:
    """Return the dotted path of the first floating-point tensor with NaN or infinity; None if there is none."""
    if isinstance(state, torch.Tensor):
        if not state.is_floating_point() or not state.numel():
            return None
        return None if all(bound.isfinite() for bound in state.aminmax()) else path  # aminmax propagates NaN
    if isinstance(state, dict):
        items = [(f"{path}.{key}".lstrip("."), item) for key, item in state.items()]
    elif isinstance(state, list | tuple):
        items = [(f"{path}.{index}", item) for index, item in enumerate(state)]
    else:
        return None
    return next((found for name, item in items if (found := not_finite(item, name))), None)


def _load(path: Path) -> dict[str, Any]:
    """Load a checkpoint without retries. Raises OSError if it cannot be read."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, NotADirectoryError) as error:
        if not is_missing(path):  # listed, but the file server lags behind
            raise
        raise MissingError(path, f"cannot be read ({error.strerror})") from None
    with file:
        return _loaded(path, file)


def _loaded(path: Path, file: IO[bytes]) -> dict[str, Any]:
    try:
        data = read_archive(path, file)  # all of it: on a failed read torch loads wrong numbers
        check_archive(io.BytesIO(data), len(data))
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        check_state(state)
    except (OSError, MemoryError, OtherFormatError):
        raise
    except DamagedError as error:
        raise CheckpointError(path, str(error)) from None
    except Exception as error:  # torch may raise anything for wrong content with a correct checksum
        raise_for_memory(error)
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(path, f"cannot be loaded ({reason})") from None
    if not isinstance(state, dict):
        raise CheckpointError(path, "contains no training state")
    bad = not_finite({key: state.get(key) for key in _PLAYING})
    if bad is not None:
        raise CheckpointError(path, f"{bad} is not finite (the run had diverged)")
    return state


def raise_for_memory(error: Exception) -> None:
    """Raise MemoryError for torch's out-of-memory error: the file may be intact."""
    if isinstance(error, RuntimeError) and "can't allocate memory" in str(error):
        raise MemoryError(str(error).splitlines()[0]) from None


def listed(folder: Path) -> list[Path]:
    """List the checkpoints of a run, newest first, without `best`. Raises OSError."""
    return CHECKPOINTS.newest_first(folder)


def path_for(folder: Path, episodes: int) -> Path:
    """Return the path of the checkpoint after `episodes`."""
    return folder / CHECKPOINTS.name(episodes)


def _newest(folder: Path, first: str | None, resuming: bool) -> LoadedCheckpoint | None:
    """Return as `load_newest`, without retries. Raises OSError if a file cannot be read."""
    if resuming:
        refuse_other_formats(folder)
    problems: dict[Path, str] = {}
    for path in ([folder / first] if first in names_in(folder) else []) + listed(folder):
        try:
            return LoadedCheckpoint(path, _load(path), problems)
        except MissingError:  # deleted by its own run since it was listed
            return _newest(folder, first, resuming)
        except CheckpointError as error:
            problems[path] = str(error)
    if problems:
        problem = f"none of its checkpoints can be used: {'; '.join(problems.values())}"
        raise CheckpointError(folder, problem, "restore one, or start with name=...")
    return None


def set_aside(path: Path) -> Path:
    """Rename a damaged checkpoint, so that it neither counts among those kept nor is lost."""
    return rename_aside(path, DAMAGED)


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest `keep` checkpoints, and leftovers of interrupted writes.

    Deletes nothing while a checkpoint is unreadable or of another version. Warns about files that cannot be deleted.
    """
    with suppress(OSError, OtherFormatError):
        refuse_other_formats(folder)
        _delete_old(folder, keep)


def _delete_old(folder: Path, keep: int) -> None:
    try:
        delete_left_over(folder)
        for path in listed(folder)[keep:]:
            path.unlink(missing_ok=True)
    except OSError as error:  # the new checkpoint is on disk, and the next call retries
        log.warning("%s: cannot be deleted (%s)", error.filename or folder, error.strerror or error)


def refuse_other_formats(folder: Path) -> None:
    """Raise OtherFormatError if a checkpoint there is of another version, OSError if one cannot be read."""
    names = names_in(folder)
    set_aside_or_best = [folder / name for name in names if name == BEST or name.endswith(DAMAGED)]
    for path in [*listed(folder), *set_aside_or_best]:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST))
            _last_line(path, file.read())


def set_aside_others(folder: Path, run: str) -> None:
    """Rename the best network and the results of another run in the folder. Raises OSError."""
    best = folder / "checkpoints" / BEST
    if best.exists():
        with suppress(CheckpointError):  # whoever uses the file reports its error
            _keep_own(best, load(best).get(RUN_KEY), run)
    if (folder / results.FILE).exists():
        with suppress(SettingsError):
            _keep_own(folder / results.FILE, results.run_of_results(folder), run)


def _keep_own(path: Path, bears: str | None, run: str) -> None:
    """Rename the file unless its id is the run's."""
    if bears != run:
        aside = rename_aside(path, f".{bears or 'other'}")
        log.warning("%s belongs to another run; renamed to %s", path, aside.name)
