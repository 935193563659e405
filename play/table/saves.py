"""Saved table to resume: its seats, seed, score, and the actions of the current game."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from busso.base.errors import InputError, UserError
from busso.base.files import write_atomic
from busso.cards import packages
from busso.cards.game import Game
from busso.command.settings.checks import MAX_SEED, SettingsError
from busso.command.settings.game import load_configured_game
from busso.play.table.seats import HUMAN
from busso.play.table.table import Score, Setup, Table

SAVES = Path("saves")
FORMAT = "busso table"
VERSION = 2


class SaveError(UserError):
    """Unusable save; the message names the file and the remedy. The file is not changed."""


def write_save(path: Path, table: Table, settings: dict[str, Any]) -> None:
    """Write the table to a file; `settings` is its group `game`. Raises OSError."""
    saved = {
        "format": FORMAT,
        "version": VERSION,
        "game": settings,
        "code": packages.game_digest(table.game.name),
        "seats": list(table.setup.seats),
        "seed": table.setup.seed,
        "match": table.setup.match,
        "number": table.number,
        "score": asdict(table.score_before),  # the current game is counted again when it is loaded
        "hands": [hand.actions for hand in table.hands],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, json.dumps(saved, indent=1) + "\n")


def read_save(path: Path) -> dict[str, Any]:
    """Read a save and check its form. Raises SaveError, and OSError if it cannot be read."""
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        raise _broken(path, "not JSON") from None
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise _broken(path, "not a saved table")
    if saved.get("version") != VERSION:
        raise _broken(path, f"version {saved.get('version')!r}, but this busso reads version {VERSION}")
    for name, holds in _FORM.items():
        if name not in saved or not holds(saved[name]):
            raise _broken(path, f"{name}: missing or invalid")
    return saved


def game_of(path: Path, saved: dict[str, Any]) -> Game:
    """Return the game of a save. Raises SaveError for an unknown one."""
    try:
        return load_configured_game(saved["game"])
    except SettingsError as error:
        raise _broken(path, error) from None


def restore(path: Path, saved: dict[str, Any]) -> Table:
    """Rebuild the saved table. Raises SaveError for inconsistent content, and as `seated_player` does."""
    game = game_of(path, saved)
    if saved["code"] != packages.game_digest(game.name):
        file = packages.typed_game(game.name)
        raise _broken(path, f"{file} has changed since, and its rules may differ")
    setup = Setup(game, tuple(saved["seats"]), saved["seed"], saved["match"])
    score = Score(**saved["score"])
    if (len(score.wins), len(score.totals)) != (len(game.teams), game.seats):
        raise _broken(path, "score: does not match the table")
    if len(setup.seats) != game.seats or HUMAN not in setup.seats:
        raise _broken(path, f"seats: expected {game.seats} with at least one human, not {list(setup.seats)}")
    if setup.match is not None and (game.match is None or setup.match not in game.match.targets):
        raise _broken(path, f"match: {game.name} is not played to {setup.match}")
    table = Table(setup)
    table.score = score
    table.begin(saved["number"])
    try:
        _replay(table, saved["hands"])
    except ValueError as error:
        raise _broken(path, error) from None
    return table


def _replay(table: Table, hands: list[list[int]]) -> None:
    for number, actions in enumerate(hands, start=1):
        if number > 1:
            if table.game_over:
                raise ValueError(f"hands: {len(hands)}, but the game was over after {number - 1}")
            table.deal()
        for action in actions:
            table.play(action)


@dataclass(frozen=True)
class SavedTable:
    """Save file with its time and content, or the one-line reason in `broken`."""

    path: Path
    written: datetime
    saved: dict[str, Any] = field(default_factory=dict)
    broken: str = ""


def saved_tables(folder: Path = SAVES) -> list[SavedTable]:
    """Return all saves in a folder, the latest first, including unusable ones, which stay unchanged."""
    files = [path for path in folder.glob("*.json") if not path.name.startswith(".")] if folder.is_dir() else []
    found = [table for path in files if (table := _looked_at(path)) is not None]
    return sorted(found, key=lambda table: (table.written, table.path.name), reverse=True)


def _looked_at(path: Path) -> SavedTable | None:
    """Describe a file; None if it has been deleted meanwhile."""
    try:
        written = datetime.fromtimestamp(path.stat().st_mtime)
    except OSError:
        return None
    try:
        return SavedTable(path, written, read_save(path))
    except SaveError as error:
        return SavedTable(path, written, broken=str(error))
    except OSError as error:
        return SavedTable(path, written, broken=f"{path}: {error.strerror or error}")


def _broken(path: Path, why: object) -> SaveError:
    hint = "nothing was changed; move it away or use another save=FILE"
    return SaveError("save", InputError(path, why), hint)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _is_score(value: Any) -> bool:
    if not isinstance(value, dict) or set(value) != {"games", "ties", "wins", "totals"}:
        return False
    lists = isinstance(value["wins"], list) and isinstance(value["totals"], list)
    numbers = lists and all(isinstance(total, int | float) and abs(total) < 1e15 for total in value["totals"])
    if not numbers or not all(map(_is_whole, (value["games"], value["ties"], *value["wins"]))):
        return False
    decided: int = value["ties"] + sum(value["wins"])
    return decided <= value["games"]


def _are_hands(value: Any) -> bool:
    lists = isinstance(value, list) and value and all(isinstance(hand, list) for hand in value)
    return bool(lists) and all(_is_whole(action) for hand in value for action in hand)


_FORM: dict[str, Callable[[Any], bool]] = {
    "game": lambda value: isinstance(value, dict) and isinstance(value.get("name"), str),
    "code": lambda value: isinstance(value, str),
    "seats": lambda value: isinstance(value, list) and all(isinstance(seat, str) for seat in value),
    "seed": lambda value: _is_whole(value) and value <= MAX_SEED,
    "match": lambda value: value is None or _is_whole(value),
    "number": lambda value: _is_whole(value) and value <= MAX_SEED,
    "score": _is_score,
    "hands": _are_hands,
}
