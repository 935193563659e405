"""The tables that were saved, for somebody who looks for one to go on with."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from play.table.saves import SaveError, read_save
from play.table.session import SAVES


@dataclass(frozen=True)
class SavedTable:
    """A file with a table: when it was written, and what it holds, or else what is `broken` about it, one line."""

    path: Path
    written: datetime
    game: str = ""
    seats: tuple[str, ...] = ()
    match: int | None = None
    seed: int = 0
    games: int = 0  # that were finished before ...
    wins: tuple[int, ...] = ()  # ... of which each team won so many
    hands: int = 0  # of the game that is being played, with the one that is in play
    moves: int = 0  # in the newest hand
    broken: str = ""


def saved_tables(folder: Path = SAVES) -> list[SavedTable]:
    """All saves in a folder, the newest first; those that cannot be used are among them, and stay as they are."""
    files = [path for path in folder.glob("*.json") if not path.name.startswith(".")] if folder.is_dir() else []
    found = [table for path in files if (table := _looked_at(path)) is not None]
    return sorted(found, key=lambda table: (table.written, table.path.name), reverse=True)


def _looked_at(path: Path) -> SavedTable | None:
    """What is in a file; None for one that has gone meanwhile."""
    try:
        written = datetime.fromtimestamp(path.stat().st_mtime)
    except OSError:
        return None
    try:
        return _summary(path, written, read_save(path))
    except SaveError as error:
        return SavedTable(path, written, broken=str(error))
    except OSError as error:
        return SavedTable(path, written, broken=f"{path}: {error.strerror or error}")


def _summary(path: Path, written: datetime, saved: dict[str, Any]) -> SavedTable:
    return SavedTable(
        path,
        written,
        game=saved["game"]["name"],
        seats=tuple(saved["seats"]),
        match=saved["match"],
        seed=saved["seed"],
        games=saved["score"]["games"],
        wins=tuple(saved["score"]["wins"]),
        hands=len(saved["hands"]),
        moves=len(saved["hands"][-1]),
    )
