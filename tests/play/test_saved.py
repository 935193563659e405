"""The list of saved tables."""

import json
import os
from pathlib import Path

from play.table.saves import saved_tables

SAVED = {
    "format": "busso table",
    "version": 1,
    "game": {"name": "tressette"},
    "seats": ["human", "greedy", "random", "greedy"],
    "seed": 7,
    "match": 21,
    "number": 2,
    "score": {"games": 2, "ties": 0, "wins": [1, 1], "totals": [0.0, 0.0, 0.0, 0.0]},
    "hands": [[0] * 40, [1, 2, 3]],
}


def test_newest_first_and_broken_ones_among_them(tmp_path: Path) -> None:
    assert saved_tables(tmp_path / "saves") == []
    (tmp_path / "first.json").write_text(json.dumps(SAVED))
    (tmp_path / "second.json").write_text(json.dumps(SAVED | {"game": {"name": "spike"}, "match": None}))
    (tmp_path / "third.json").write_text("{}")
    (tmp_path / "folder.json").mkdir()
    for number, name in enumerate(("first", "second", "third", "folder")):
        os.utime(tmp_path / f"{name}.json", (1000 * number, 1000 * number))
    (tmp_path / ".third.json").write_text("what a crash left")
    (tmp_path / "notes.txt").write_text("no table")

    folder, third, second, first = saved_tables(tmp_path)
    assert first.saved == SAVED and first.broken == ""
    assert (second.path.name, second.saved["game"]["name"], second.saved["match"]) == ("second.json", "spike", None)
    assert third.broken.startswith(f"save: {third.path}: it is no save of a table; ") and "\n" not in third.broken
    assert folder.path.name == "folder.json" and "directory" in folder.broken
