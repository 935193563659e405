"""Which checkpoints of a run stay, and which segments of its replay buffer they need."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from pathlib import Path

from cards.base.files import delete_left_over
from train.run.checkpoint import checkpoint, segments
from train.run.checkpoint.checkpoint import LONGEST_LINE, MAGIC
from train.run.checkpoint.files import NewerFormatError, header_bytes

log = logging.getLogger("train")


def prune(folder: Path, keep: int) -> None:
    """Delete all but the newest `keep` checkpoints, segments that none of them needs, and what interruptions left.

    Nothing while a checkpoint cannot be read, or is of a newer busso. What cannot be deleted stays, with a warning.
    """
    if not _may_delete(folder):
        return
    try:
        delete_left_over(folder)
        for path in checkpoint.listed(folder)[keep:]:
            path.unlink(missing_ok=True)
    except OSError as error:  # the new checkpoint is on disk, and the next call tries again
        log.warning("%s: cannot be deleted (%s)", error.filename or folder, error.strerror or error)
    delete_unneeded_segments(folder)


def delete_unneeded_segments(folder: Path) -> None:
    """Delete segments that no checkpoint needs: those that are set aside may still be repaired, and count as well.

    Nothing while a checkpoint cannot be read, or is of a newer busso.
    """
    if not _may_delete(folder):
        return
    with suppress(OSError):  # one that cannot be read any more: the next call tries again
        needed = {name for path in checkpoint.needing(folder) for name in _needed(path)}
        segments.delete_all_but(folder, needed)


def _may_delete(folder: Path) -> bool:
    try:
        checkpoint.refuse_newer_than_known(folder)
    except (OSError, NewerFormatError):
        return False
    return True


def _needed(path: Path) -> list[str]:
    """Their names; none of a file that is no checkpoint. Raises OSError when it cannot be read."""
    with path.open("rb") as file:
        magic = file.read(header_bytes(MAGIC))[: len(MAGIC)]
        try:
            descriptions = json.loads(file.readline(LONGEST_LINE)) if magic == MAGIC else []
            return [name for each in descriptions for name, *_ in each.get("segments", [])]
        except (ValueError, TypeError, AttributeError):
            return []
