"""A file of recorded games to look on at: all of it, or the line that is in the way."""

from __future__ import annotations

from pathlib import Path

from command.errors import UserError
from evaluate.recorded import Damaged, Recorded, recorded_hands


class RecordError(UserError):
    """A record that cannot be shown; the message names the file and the line."""


def read_hands(path: Path) -> list[Recorded]:
    """The hands of a file of records, in order. Raises RecordError for the first that breaks a rule, and OSError."""
    found: list[Recorded] = []
    for hand in recorded_hands(path):
        if isinstance(hand, Damaged):
            raise RecordError("watch", f"{path}, line {hand.line}: {hand.error}", "mend the line, or take it out")
        found.append(hand)
    if not found:
        raise RecordError("watch", f"{path}: there is no record in it", "record=FILE writes some while you play")
    return found
