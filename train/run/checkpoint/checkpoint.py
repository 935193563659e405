"""Checkpoints: written atomically, verified before use, loaded without running code.

A file is the output of `torch.save` plus a checksum (archive.py). A file of another format is refused, and nothing in
its folder is renamed or deleted. A damaged file is renamed, and the one before it is used. An unreadable file may be
intact: after retries the run ends with exit code 75, and all files stay.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import torch

from busso.cards.base.errors import UserError
from busso.cards.base.files import delete_left_over, names_in, rename_aside, replacing
from busso.train.run.checkpoint import archive
from busso.train.run.checkpoint.archive import DamagedError, OtherFormatError
from busso.train.run.checkpoint.content import check_archive, check_state, not_finite
from busso.train.run.checkpoint.files import is_missing, with_retries
from busso.train.run.signals import EXIT_REQUEUE
from busso.train.settings.run import CHECKPOINTS

log = logging.getLogger("train")

BEST = "best.pt"
DAMAGED = ".damaged"  # suffix of damaged files that were set aside
_PLAYING = ("acting", "evaluating")  # weights for play in a state; they follow all learned ones


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
            archive.write(file, state)
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
        data = archive.read(path, file)  # all of it: on a failed read torch loads wrong numbers
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
        archive.check_format(path)
