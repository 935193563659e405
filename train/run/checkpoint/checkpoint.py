"""Checkpoints: written whole or not at all, checked before they are used, loaded without running code.

A file is what `torch.save` writes, with a checksum behind it (archive.py). A file of another format is refused, and
nothing beside it is renamed or deleted.

A damaged file is renamed, and the one before it is used. A file that cannot be read may be whole: the read is tried
again, then the run ends with exit code 75, and all files stay.
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

from busso.cards.base.files import delete_left_over, names_in, rename_aside, replacing
from busso.command.errors import UserError
from busso.train.run.checkpoint import archive
from busso.train.run.checkpoint.archive import DamagedError, OtherFormatError
from busso.train.run.checkpoint.content import check_archive, check_state, not_finite
from busso.train.run.checkpoint.files import is_missing, patiently
from busso.train.run.signals import EXIT_REQUEUE
from busso.train.settings.run import CHECKPOINTS

log = logging.getLogger("train")

BEST = "best.pt"
DAMAGED = ".damaged"  # how the names of files end that were set aside
_PLAYING = ("acting", "evaluating")  # the weights in a state that play, and follow all that are learned


class CheckpointError(UserError):
    """A checkpoint that is missing, damaged or of another run; the message names the file and the way out."""


class MissingError(CheckpointError):
    """There is no such file."""


class UnreadableError(CheckpointError):
    """A file that may be whole and cannot be read now."""

    exit_code = EXIT_REQUEUE

    @classmethod
    def because(cls, error: OSError, path: Path) -> UnreadableError:
        """The error for what the system said of a file; `path` is the file where it names none."""
        problem = f"cannot be read ({error.strerror or error}); nothing was changed"
        return cls(error.filename or path, problem, "check that the disk is mounted, then repeat the command")


def save(path: Path, state: dict[str, Any], allowed: Callable[[], None] = lambda: None) -> None:
    """Write `state` to `path`: to a temporary file beside it, synced, then renamed over it.

    Raises CheckpointError when the disk does not take it, and what `allowed` raises just before the renaming; `path` is
    then as it was. Of a tensor that is a view, all that is behind it is written.
    """
    try:
        with replacing(path, allowed) as temporary, temporary.open("wb") as file:
            archive.write(file, state)
    except OSError as error:
        problem = f"cannot be written ({error.strerror})"
        raise CheckpointError(path, problem, "free some space or choose another disk with runs=FOLDER") from error


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU.

    Raises CheckpointError when it is damaged or of a diverged network, MissingError when it is not there,
    UnreadableError when it cannot be read, and OtherFormatError for one of another version.
    """
    try:
        return patiently(partial(_load, path))
    except OSError as error:
        raise UnreadableError.because(error, path) from None


def _load(path: Path) -> dict[str, Any]:
    """The same at once, and an OSError where it cannot be read."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, NotADirectoryError) as error:
        if not is_missing(path):  # it is listed: the file server is behind
            raise
        raise MissingError(path, f"cannot be read ({error.strerror})") from None
    with file:
        return _loaded(path, file)


def _loaded(path: Path, file: IO[bytes]) -> dict[str, Any]:
    try:
        data = archive.read(path, file)  # all of it: torch makes wrong numbers of a read that fails
        check_archive(io.BytesIO(data), len(data))
        state = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
        check_state(state)
    except (OSError, MemoryError, OtherFormatError):
        raise
    except DamagedError as error:
        raise CheckpointError(path, str(error)) from None
    except Exception as error:  # whatever a file with a right checksum and a wrong content makes torch raise
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
    """Raise MemoryError for what torch raises when there is too little: the file may be whole."""
    if isinstance(error, RuntimeError) and "can't allocate memory" in str(error):
        raise MemoryError(str(error).splitlines()[0]) from None


def listed(folder: Path) -> list[Path]:
    """The checkpoints of a run, newest first; `best` is not among them. Raises OSError."""
    return CHECKPOINTS.newest_first(folder)


def path_for(folder: Path, episodes: int) -> Path:
    """Return the path of the checkpoint after `episodes`."""
    return folder / CHECKPOINTS.name(episodes)


@dataclass(frozen=True)
class Found:
    """A checkpoint that is whole, and what is wrong with those that would have been taken before it."""

    path: Path
    state: dict[str, Any]
    problems: dict[Path, str]


def load_newest(folder: Path, first: str | None = None, to_go_on: bool = True) -> Found | None:
    """The newest checkpoint that is whole (that of the name `first`, if it is there, comes before them all).

    None without any file. Raises CheckpointError when there are checkpoints and all are damaged: nothing is thrown away
    silently. Raises UnreadableError when one that counts cannot be read, and OtherFormatError when one is of another
    version; `to_go_on`, when any is.
    """
    try:
        return patiently(partial(_newest, folder, first, to_go_on))
    except OSError as error:
        raise UnreadableError.because(error, folder) from None


def _newest(folder: Path, first: str | None, to_go_on: bool) -> Found | None:
    """The same at once, and an OSError where one cannot be read."""
    if to_go_on:
        refuse_other_formats(folder)
    problems: dict[Path, str] = {}
    for path in ([folder / first] if first in names_in(folder) else []) + listed(folder):
        try:
            return Found(path, _load(path), problems)
        except MissingError:  # deleted since it was listed, by the run that it is of
            return _newest(folder, first, to_go_on)
        except CheckpointError as error:
            problems[path] = str(error)
    if problems:
        text = "; ".join(problems.values())
        raise CheckpointError(
            folder, f"none of its checkpoints can be used: {text}", "restore one, or start with name=..."
        )
    return None


def load_best(folder: Path) -> Found | None:
    """The best checkpoint of a run if it is whole, else the newest that is. Raises like `load_newest`."""
    return load_newest(folder, first=BEST, to_go_on=False)


def load_named(path: Path) -> tuple[Path, dict[str, Any]]:
    """A checkpoint file, or the best of a run folder. A better one that is damaged is a warning.

    Raises CheckpointError when there is none that is whole.
    """
    if not path.is_dir():
        return path, load(path)
    found = load_best(path / "checkpoints")
    if found is None:
        raise CheckpointError(path, "contains no checkpoint", "train it first")
    for problem in found.problems.values():
        log.warning("%s; %s is used", problem, found.path)
    return found.path, found.state


def set_aside(path: Path) -> Path:
    """Rename a damaged checkpoint, so that it neither counts as one of those that are kept nor is lost."""
    return rename_aside(path, DAMAGED)


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest `keep` checkpoints, and what interrupted writes have left behind.

    Nothing is deleted while a checkpoint cannot be read, or is of another version. What cannot be deleted stays, with a
    warning.
    """
    with suppress(OSError, OtherFormatError):
        refuse_other_formats(folder)
        _delete_old(folder, keep)


def _delete_old(folder: Path, keep: int) -> None:
    try:
        delete_left_over(folder)
        for path in listed(folder)[keep:]:
            path.unlink(missing_ok=True)
    except OSError as error:  # the new checkpoint is on disk, and the next call tries again
        log.warning("%s: cannot be deleted (%s)", error.filename or folder, error.strerror or error)


def refuse_other_formats(folder: Path) -> None:
    """Raise OtherFormatError when a checkpoint there is of another version, OSError when one cannot be read."""
    names = names_in(folder)
    set_aside_or_best = [folder / name for name in names if name == BEST or name.endswith(DAMAGED)]
    for path in [*listed(folder), *set_aside_or_best]:
        archive.check_format(path)
