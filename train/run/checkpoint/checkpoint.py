"""Checkpoints: written whole or not at all, checked before they are used, loaded without running code.

A file is what `torch.save` writes, with a checksum behind it (archive.py). The rows of the replay
buffer are in files of their own (segments.py), which checkpoints share: a checkpoint that is copied
without them can still play. A newer format is refused.

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
from io import BufferedReader
from pathlib import Path
from typing import Any

import torch

from busso.cards.base.files import names_in, rename_aside, sync_folder, temporary_beside
from busso.command.errors import UserError
from busso.train.run.checkpoint import archive, segments
from busso.train.run.checkpoint.columns import Columns, Place, put, without_columns
from busso.train.run.checkpoint.content import check_archive, check_state, not_finite
from busso.train.run.checkpoint.files import DamagedError, NewerFormatError, is_missing, on_disk, patiently
from busso.train.run.checkpoint.segments import StoredSegments
from busso.train.run.signals import EXIT_REQUEUE
from busso.train.settings.run import CHECKPOINTS

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
        return cls(error.filename or path, problem, "see that the disk is there, then give the same command again")


def save(path: Path, state: dict[str, Any]) -> None:
    """Write `state` to `path`: to a temporary file beside it, fsynced, then renamed over it.

    Raises CheckpointError when the disk does not take it; `path` is then as it was.
    """
    columns: dict[Place, Columns] = {}
    write(path, without_columns(state, columns), columns)


def write(path: Path, rest: Any, columns: dict[Place, Columns], allowed: Callable[[], None] = lambda: None) -> None:
    """Raises CheckpointError, and what `allowed` raises just before the file is there; it is then as it was."""
    temporary = temporary_beside(path)
    try:
        descriptions = [{**each.written(path.parent), "place": place} for place, each in columns.items()]
        with on_disk(temporary) as file:
            archive.write(file, rest, descriptions)
        allowed()
        for description in descriptions:
            segments.check_there(path.parent, description)
        temporary.replace(path)
        sync_folder(path.parent)
    except (OSError, RuntimeError) as error:
        # torch reports a failed write as a RuntimeError of its own.
        raise CheckpointError(
            path, f"could not be written ({error})", "free some space or choose runs=FOLDER"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink()


def load(path: Path) -> dict[str, Any]:
    """Read a checkpoint onto the CPU, but for its segments, which are read when they are asked for.

    Raises CheckpointError when it is damaged or of a diverged network, MissingError when it is not there, and
    UnreadableError when it cannot be read, NewerFormatError for one of a newer busso.
    """
    try:
        return patiently(partial(_load, path))
    except OSError as error:
        raise UnreadableError.because(error, path) from None


def _load(path: Path, with_segments: bool = False) -> dict[str, Any]:
    """The same at once, and an OSError where it cannot be read; `with_segments` those that it needs must be whole."""
    try:
        file = path.open("rb")
    except (FileNotFoundError, NotADirectoryError) as error:
        if not is_missing(path):  # it is listed: the file server is behind
            raise
        raise MissingError(path, f"cannot be read ({error.strerror})") from None
    with file:
        return _loaded(path, file, with_segments)


def _loaded(path: Path, file: BufferedReader, with_segments: bool) -> dict[str, Any]:
    try:
        columns, data = archive.read(path, file)
        rest = io.BytesIO(data)  # torch makes another error of one that comes while it reads
        check_archive(rest, len(data))
        state = torch.load(rest, map_location="cpu", weights_only=True)
        check_state(state)
        for place, each in columns.items():
            columns[place] = StoredSegments(path.parent / segments.FOLDER, each)
            put(state, place, columns[place])
    except (OSError, MemoryError, NewerFormatError):
        raise
    except DamagedError as error:
        raise CheckpointError(path, str(error)) from None
    except Exception as error:  # whatever a file with a right checksum and a wrong content makes torch raise
        raise_for_memory(error)
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise CheckpointError(path, f"cannot be loaded ({reason})") from None
    if not isinstance(state, dict):
        raise CheckpointError(path, "holds no training state")
    for each in columns.values():
        if with_segments and isinstance(each, StoredSegments):
            _check_segments(path, each)
    bad = not_finite({key: state.get(key) for key in _PLAYING})
    if bad is not None:
        raise CheckpointError(path, f"{bad} is not finite (the run had diverged)")
    return state


def raise_for_memory(error: Exception) -> None:
    """Raise MemoryError for what torch raises when there is too little: the file may be whole."""
    if isinstance(error, RuntimeError) and "can't allocate memory" in str(error):
        raise MemoryError(str(error).splitlines()[0]) from None


def _check_segments(path: Path, columns: StoredSegments) -> None:
    try:
        columns.check()
    except NewerFormatError:
        raise
    except ValueError as error:
        raise CheckpointError(path, f"damaged ({error})") from None


def listed(folder: Path) -> list[Path]:
    """The checkpoints of a run, newest first; `best` is not among them. Raises OSError."""
    return CHECKPOINTS.newest_first(folder)


def path_for(folder: Path, episodes: int) -> Path:
    """Where the checkpoint after `episodes` lies."""
    return folder / CHECKPOINTS.name(episodes)


@dataclass(frozen=True)
class Found:
    """A checkpoint that is whole, and what is wrong with those that would have been taken before it."""

    path: Path
    state: dict[str, Any]
    problems: dict[Path, str]


def load_newest(folder: Path, first: str | None = None, to_go_on: bool = True) -> Found | None:
    """The newest checkpoint that is whole (that of the name `first`, if it is there, comes before them all).

    None without any file. To be whole it needs its segments, too, if it is `to_go_on`; where none has them all, the
    newest is taken that is whole but for them. Raises CheckpointError when there are checkpoints and all are damaged:
    nothing is thrown away silently. Raises UnreadableError when one that counts cannot be read, and NewerFormatError
    when one is of a newer busso; `to_go_on`, when any is.
    """
    try:
        return patiently(partial(_newest, folder, first, to_go_on))
    except OSError as error:
        raise UnreadableError.because(error, folder) from None


def _newest(folder: Path, first: str | None, to_go_on: bool) -> Found | None:
    """The same at once, and an OSError where one cannot be read."""
    if to_go_on:
        refuse_newer_than_known(folder)
    paths = ([folder / first] if first in names_in(folder) else []) + listed(folder)
    for with_segments in (True, False) if to_go_on else (False,):
        problems: dict[Path, str] = {}
        for path in paths:
            try:
                return Found(path, _load(path, with_segments), problems)
            except MissingError:  # deleted since it was listed, by the run that it is of
                return _newest(folder, first, to_go_on)
            except CheckpointError as error:
                problems[path] = str(error)
    if problems:
        text = "; ".join(problems.values())
        raise CheckpointError(folder, f"no checkpoint there can be used: {text}", "restore one, or start with name=...")
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
        raise CheckpointError(path, "holds no checkpoint", "train it first")
    for problem in found.problems.values():
        logging.getLogger("train").warning("%s; %s is used", problem, found.path)
    return found.path, found.state


def set_aside(path: Path) -> Path:
    """Rename a damaged checkpoint, so that it neither counts as one of those that are kept nor is lost."""
    return rename_aside(path, DAMAGED)


def needing(folder: Path) -> list[Path]:
    """The files that may need segments. Raises OSError."""
    return [*listed(folder), *(folder / name for name in names_in(folder) if name.endswith(DAMAGED))]


def refuse_newer_than_known(folder: Path) -> None:
    """Raises NewerFormatError when a checkpoint there is of a newer busso, OSError when one cannot be read."""
    best = [folder / BEST] if BEST in names_in(folder) else []
    for path in [*needing(folder), *best]:
        with path.open("rb") as file:
            archive.lines(path, file)
