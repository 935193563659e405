"""Journal of a tournament, from which it resumes: one line with a checksum for each batch."""

import base64
import json
import logging
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from busso.base.files import errors_name, write_atomic
from busso.base.lock import InUseError, Lock, in_job
from busso.cards.duplicate import Duel
from busso.command.settings.checks import SettingsError
from busso.evaluate.tournament.batches import Batch, Played, Timing

log = logging.getLogger("evaluate")

ABOUT, BATCHES, LOCK = "tournament.json", "batches.jsonl", ".lock"
# Keys of `about` with entries by name that a later start may add to, but not change: digests of files and of sources,
# and the number format of networks.
PLAYERS, CODE, FORMAT = ADDED = "players", "code", "number_format"
_OTHER_FOLDER = "choose another folder"


class Journal:
    """Folder of a tournament, locked by one process at a time.

    `about` has the settings that decide the results. Raises SettingsError, naming the first key that differs, for the
    folder of another tournament, and for a folder that is in use or not writable. The players may differ, but a name
    must stand for the same file.
    """

    def __init__(self, folder: Path, about: Mapping[str, Any]) -> None:
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = Lock(folder / LOCK)
            self._lock.acquire(waits_for=in_job)
        except InUseError as error:
            problem = f"another tournament is being played in {folder} ({error.who})"
            in_use = SettingsError("folder", problem, f"choose another; {error.hint}")
            in_use.exit_code = error.exit_code
            raise in_use from None
        except OSError as error:
            raise not_writable(folder, error) from None
        try:
            self._check(about)
            self.played = list(self._read())
            self._file = (folder / BATCHES).open("ab")
        except BaseException:
            self._lock.release()
            raise
        if self._file.tell() and not (folder / BATCHES).read_bytes().endswith(b"\n"):
            self._file.write(b"\n")  # the last line is incomplete

    def add(self, played: Played) -> None:
        """Append a batch to the file. Raises LostError if another process has taken over the folder."""
        self._lock.require_own()
        with errors_name(self.folder / BATCHES):
            self._file.write(_line(played))
            self._file.flush()

    def close(self) -> None:
        """Release the folder."""
        with errors_name(self.folder / BATCHES):
            self._file.close()
        self._lock.release()

    def _check(self, about: Mapping[str, Any]) -> None:
        path = self.folder / ABOUT
        before = about_of(self.folder)
        now = json.loads(json.dumps(about))
        for key in now if before else ():
            if key in ADDED:
                _check_added(self.folder, key, before.get(key, {}), now[key])
            elif before.get(key) != now[key]:
                raise SettingsError(
                    key,
                    f"the games in {self.folder} were played with {_text(before.get(key))}, not {_text(now[key])}",
                    _OTHER_FOLDER,
                )
        added = {key: before.get(key, {}) | now.get(key, {}) for key in ADDED}
        write_atomic(path, json.dumps(now | added, indent=2) + "\n")

    def _read(self) -> Iterator[Played]:
        path = self.folder / BATCHES
        lines = path.read_bytes().splitlines() if path.exists() else []
        damaged = 0
        for line in lines:
            try:
                yield _played(line)
            except (ValueError, KeyError, TypeError, zlib.error):
                damaged += 1
        if damaged:
            log.warning("%s: %d incomplete batches are replayed", path, damaged)


def not_writable(folder: Path, error: OSError) -> SettingsError:
    """Return the error for a folder that cannot be created or written to."""
    return SettingsError("folder", f"cannot write to {folder} ({error.strerror})", "choose another")


def about_of(folder: Path) -> dict[str, Any]:
    """Read the settings that decide the results in a folder; empty if it is new. Raises SettingsError if damaged."""
    path = folder / ABOUT
    try:
        about = json.loads(path.read_bytes()) if path.exists() else {}
    except ValueError:
        about = None
    if not isinstance(about, dict) or not all(isinstance(about.get(key, {}), dict) for key in ADDED):
        raise SettingsError("folder", f"{path} is damaged", _OTHER_FOLDER)
    return about


def _check_added(folder: Path, key: str, before: Mapping[str, str], now: Mapping[str, str]) -> None:
    for name, value in now.items():
        if (then := before.get(name, value)) == value:
            continue
        if key == FORMAT:
            problem, hint = f"{name} played in {then} in {folder}, and here play in {value}", "or resume on such a CPU"
        else:
            what = f"the file of {name}" if key == PLAYERS else name
            problem, hint = f"{what} has changed since the games in {folder}", ""
        raise SettingsError(key, problem, f"{_OTHER_FOLDER}, {hint}".removesuffix(", "))


def _text(value: Any) -> str:
    return json.dumps(value) if isinstance(value, (dict, list)) else str(value)


def _line(played: Played) -> bytes:
    duel = played.duel
    arrays = np.stack([duel.wins, duel.own, duel.other]).astype("<f8")
    content = {
        "unit": asdict(played.batch),
        "even": duel.even,
        "duel": base64.b64encode(zlib.compress(arrays.tobytes())).decode(),
        "spent": [asdict(spent) for spent in played.spent],
        "seconds": played.seconds,
        "records": played.records,
    }
    text = json.dumps(content, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _played(line: bytes) -> Played:
    """Parse a line. Raises ValueError, KeyError, TypeError or zlib.error if it is damaged."""
    checksum, _, text = line.partition(b" ")
    if int(checksum, 16) != zlib.crc32(text):
        raise ValueError("the checksum does not match")
    content = json.loads(text)
    batch = Batch(**content["unit"] | {"pair": tuple(content["unit"]["pair"])})
    numbers = np.frombuffer(zlib.decompress(base64.b64decode(content["duel"])), "<f8").astype(np.float64)
    wins, own, other = numbers.reshape(3, batch.deals)
    first, second = (Timing(**spent) for spent in content["spent"])
    return Played(
        batch, Duel(wins, own, other, content["even"]), (first, second), content["seconds"], content["records"]
    )
