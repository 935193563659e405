"""Table with its files, records of finished games and a save to resume from; its opening from settings or a save."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from io import FileIO
from pathlib import Path
from typing import Any

from busso.base import own_files
from busso.base.files import create_unused, errors_name
from busso.cards import packages
from busso.cards.hand import Hand, Move
from busso.cards.records import read_records
from busso.command.settings.game import load_configured_game
from busso.play.table.hints import Coach
from busso.play.table.saves import SAVES, game_of, read_save, restore, write_save
from busso.play.table.seats import HUMAN
from busso.play.table.settings import Given, PlaySettings, check_match, check_same, seats_of
from busso.play.table.table import Setup, Table
from busso.play.views import events, result, view

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


class Session:
    """Session of a person at a table, with everything finished written at once.

    `settings` is the group `game`. With a file `save`, each decision of a person and each end of a hand is saved there;
    with None the file is named when first needed. `restored`: the table comes from the save, and its finished hands are
    already recorded. The constructor raises OSError if a file cannot be written. Later the game continues: `trouble`
    holds the error until it is reported, and records are retried with the next ones and at the end.
    """

    def __init__(
        self,
        table: Table,
        coach: Coach,
        settings: dict[str, Any],
        ledger: Ledger | None = None,
        save: Path | None = None,
        restored: bool = False,
    ) -> None:
        self.table, self.coach = table, coach
        self.path = save
        self.settings, self._ledger = settings, ledger
        self._always = save is not None
        self._pending: list[list[dict[str, Any]]] = []  # records that could not be written yet
        self.trouble: OSError | None = None  # unreported error of a write
        self._told = ""
        self.finished = restored and table.game_over  # before this session, so only the next game is played
        if not restored:
            self._write(by_person=True)

    def play(self, action: int) -> Move:
        """Play a person's action. Raises ValueError, one line, if it is illegal or not a person's turn."""
        if not self.table.person_to_move:
            raise ValueError("it is not a human's turn")
        move = self.table.play(action)
        self._keep(by_person=True)
        return move

    def reply(self) -> Move:
        """Let the player to move play."""
        move = self.table.reply()
        self._keep(by_person=False)
        return move

    def undo(self) -> bool:
        """See `Table.undo`."""
        undone = self.table.undo()
        if undone:
            self._keep(by_person=True)
        return undone

    def deal(self) -> None:
        """See `Table.deal`."""
        self.table.deal()
        self._keep(by_person=True)

    def save(self) -> Path:
        """Save the table now; return the file."""
        free = SAVES / f"{self.table.game.name}-{self.table.setup.seed}.json"
        path = self.path or create_unused(free, partial(Path.touch, exist_ok=False))  # empty until it is written
        try:
            write_save(path, self.table, self.settings)
        except OSError:
            if self.path is None:
                path.unlink(missing_ok=True)  # it is empty
            raise
        self.path = path
        return path

    def leave(self) -> bool:
        """Save an unfinished table or one with a save file; return whether there was one. Raises OSError."""
        wanted = self.path is not None or not self.table.game_over
        try:
            self._write_pending()
        finally:
            if wanted:
                self.save()
        return wanted

    def take_error(self) -> OSError | None:
        """Return `trouble` and clear it."""
        trouble, self.trouble = self.trouble, None
        return trouble

    def under(self, settings: dict[str, Any]) -> Session:
        """Return a session with the same people, seed and records, other options and no save. Raises SettingsError."""
        game = load_configured_game(settings)
        table = Table(replace(self.table.setup, game=game))
        return Session(table, Coach(game, settings, self._hint()), settings, self._ledger)

    def command(self, lang: str) -> str:
        """Return the command line that resumes the saved table in this language."""
        given = {"save": self.path, "record": self._ledger.path if self._ledger else None, "hint": self._hint()}
        given |= {"lang": lang if lang != "en" else None}
        words = [*self._own_code(), *(f"{key}={value}" for key, value in given.items() if value is not None)]
        return " ".join(("busso play", *map(shlex.quote, words)))

    def _own_code(self) -> Iterator[str]:
        """Yield the words that name the user's Python files, which a save must not name."""
        game, seats = self.table.game, self.table.setup.seats
        if packages.typed_game(game.name) != game.name:
            yield f"game={packages.typed_game(game.name)}"
        players = [own_files.find(words[0]) for words in map(own_files.parted, seats) if words]
        if players:
            seat = seats.index(HUMAN)
            team = next(team for team in game.teams if seat in team)
            yield from [f"seat={seat}"] if seat else []
            yield f"opponents=[{','.join(name for place, name in enumerate(seats) if place not in team)}]"
            yield from [f"partner={seats[place]}" for place in team if place != seat][:1]
        runs = [name for name in (*seats, self._hint() or "") if not own_files.parted(name)]
        if any(Path(part).exists() for name in runs for part in name.split(":") if part):
            yield from (f"network={file.typed}" for file in packages.without_game() if file not in players)

    def _hint(self) -> str | None:
        return self.coach.name if self.coach.chosen else None

    def _keep(self, by_person: bool) -> None:
        try:
            self._write(by_person)
            self._told = ""
        except OSError as error:
            if str(error) != self._told:
                self._told, self.trouble = str(error), error

    def _write(self, by_person: bool) -> None:
        over = self.table.hand.over
        try:
            if over and self._ledger is not None:
                self._pending.append([*self.table.records])
                self._write_pending()
        finally:
            if self._always and (by_person or over):
                self.save()

    def _write_pending(self) -> None:
        while self._pending and self._ledger is not None:
            self._ledger.add(self._pending[0])
            del self._pending[0]


def open_session(settings: PlaySettings, given: Given, welcome: Any = lambda game, seed: None) -> Session:
    """Open the table of these settings, or that of an existing save; `given` are the overrides.

    `welcome(game, seed)` is called as soon as both are known. Raises SettingsError, SaveError, CheckpointError and
    OSError.
    """
    path = Path(settings.save) if settings.save is not None else None
    saved = read_save(path) if path is not None and path.exists() else None
    if path is not None and saved is not None:
        group, seed, game = saved["game"], saved["seed"], game_of(path, saved)
        check_same(path, saved, settings, given, game)
        seated: Callable[[], Table] = partial(restore, path, saved)
    else:
        group, seed, game = settings.game, settings.chosen_seed(), load_configured_game(settings.game)
        check_match(settings, game)
        seated = partial(Table, Setup(game, seats_of(settings, game), seed, settings.match))
    welcome(game, seed)
    coach = Coach(game, group, settings.hint)
    ledger = Ledger(Path(settings.record)) if settings.record is not None else None
    return Session(seated(), coach, group, ledger, path, restored=saved is not None)


def warm_up(session: Session) -> None:
    """Play the latest deal to its end, on copies, to compile everything now."""
    for choice in (0, -1):  # always the first legal action, then always the last
        hand = Hand(session.table.game, session.table.hand.seeds, session.table.hand.start)
        while not hand.over:
            move = hand.play(hand.legal[choice])
            view(hand, move.seat)
            events(hand, move)
        result(hand)
        hand.returns()
        hand.record()
