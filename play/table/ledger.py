"""Records of finished games in a file, one JSON object per line, for `busso.evaluate.replay`."""

import errno
import fcntl
import json
import os
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any

from busso.cards.base.files import errors_name
from busso.cards.records import read_records

_SECONDS_FOR_LOCK = 5.0  # for another table's write


class Ledger:
    """File to which finished games are appended. Raises OSError if it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        append_lines(path, [])

    def add(self, records: list[dict[str, Any]]) -> None:
        """Append the latest record, or a match's missing hands; another match of its name in the file renames it."""
        if "match" in records[-1]:
            name, known = self._place(records)
            records = [record | {"match": name} for record in records[known:]]
        else:
            records = records[-1:]
        append_lines(self.path, [json.dumps(record, separators=(",", ":")) for record in records])

    def _place(self, records: list[dict[str, Any]]) -> tuple[str, int]:
        """Return the match's name in the file, and how many of its hands are there."""
        there: dict[Any, list[dict[str, Any]]] = {}
        for _, record in read_records(self.path):
            if isinstance(record, dict) and isinstance(record.get("match"), str):
                there.setdefault(record["match"], []).append(record)
        first, number = str(records[0]["match"]), 1
        name = first
        while True:
            known = there.get(name, [])
            if known == [record | {"match": name} for record in records[: len(known)]]:
                return name, len(known)
            number += 1
            name = f"{first}-{number}"


def append_lines(path: Path, lines: list[str]) -> None:
    """Append lines to a file, all or none, after completing an unfinished last line. Raises OSError.

    Each table locks the file. On a mount without locks, a failed write leaves its lines if another table has appended
    after them.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with errors_name(path), path.open("ab+", buffering=0) as file:
        _lock(file)
        end = file.seek(0, os.SEEK_END)
        if end > 0:
            file.seek(-1, os.SEEK_END)
            lines = lines if file.read(1) == b"\n" else ["", *lines]
        left, mine = "".join(f"{line}\n" for line in lines).encode(), 0
        try:
            while left:  # a nearly full disk may accept only part of it
                written = file.write(left)
                left, mine = left[written:], mine + written
            os.fsync(file.fileno())
        except OSError:
            with suppress(OSError):
                if file.seek(0, os.SEEK_END) == end + mine:
                    file.truncate(end)
            raise


def _lock(file: FileIO) -> None:
    """Lock a file until it is closed. Raises OSError if another process holds it for seconds."""
    until = time.monotonic() + _SECONDS_FOR_LOCK
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (errno.EACCES, errno.EAGAIN):
                return  # the mount has no locks
            if time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return
