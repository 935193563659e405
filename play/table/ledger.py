"""Records of finished games in a file, one JSON object per line, for `busso.evaluate.replay`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from busso.cards.records import read_records
from busso.play.table.files import append_lines


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
