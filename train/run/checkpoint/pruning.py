"""Which checkpoints of a run are kept, and which segments of its replay buffer they need."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path

from busso.cards.base.files import delete_left_over
from busso.train.run.checkpoint import archive, checkpoint, segments
from busso.train.run.checkpoint.files import NewerFormatError

log = logging.getLogger("train")


def prune(folder: Path, keep: int | None = None) -> None:
    """Delete all but the newest `keep` checkpoints, if that is given, and segments that no checkpoint needs.

    Those that are set aside may still be repaired, and count as well. Nothing is deleted while a checkpoint cannot be
    read, or is of a newer busso. What cannot be deleted stays; a checkpoint with a warning.
    """
    with suppress(OSError, NewerFormatError):
        checkpoint.refuse_newer_than_known(folder)
        if keep is not None:
            _delete_old(folder, keep)
        needed = {name for path in checkpoint.needing(folder) for name in _needed(path)}
        segments.delete_all_but(folder, needed)


def _delete_old(folder: Path, keep: int) -> None:
    try:
        delete_left_over(folder)
        for path in checkpoint.listed(folder)[keep:]:
            path.unlink(missing_ok=True)
    except OSError as error:  # the new checkpoint is on disk, and the next call tries again
        log.warning("%s: cannot be deleted (%s)", error.filename or folder, error.strerror or error)


def _needed(path: Path) -> list[str]:
    """Their names; none of a file that is no checkpoint. Raises OSError when it cannot be read."""
    with path.open("rb") as file:
        text, _ = archive.lines(path, file)
        try:
            return [name for each in json.loads(text) for name, *_ in each.get("segments", [])]
        except (ValueError, TypeError, AttributeError):
            return []
