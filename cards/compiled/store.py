"""Machine code on disk: one file per function and signature, in a folder private to the user.

The folder is $BUSSO_CACHE, else $XDG_CACHE_HOME/busso, else ~/.cache/busso. If it cannot be used, functions are
compiled without a cache, and one log line says why.
"""

import contextlib
import hashlib
import logging
import os
import re
import stat
from pathlib import Path

log = logging.getLogger(__name__)

LARGEST = 1 << 29  # total bytes beyond which all files are deleted
_DIGEST = hashlib.sha256().digest_size
_SUFFIX = ".code"
_FILE = re.compile(rf"[0-9a-f]{{64}}({re.escape(_SUFFIX)}|\.[0-9]+-[0-9a-f]{{8}})")  # cached and temporary files


def default_folder() -> Path:
    """Return the folder of this user's compiled code. Raises RuntimeError without a home folder."""
    if named := os.environ.get("BUSSO_CACHE"):
        return Path(named).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser().absolute() / "busso"


class CodeStore:
    """Files by key in `folder/version`. `problem` says why none are written; a read-only folder is still read."""

    def __init__(self, folder: Path, version: str) -> None:
        self.folder = folder
        self._path = folder / version
        self.problem: str | None = None
        self._private = self._has_written = False
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            for path in (folder, self._path):
                path.mkdir(mode=0o700, exist_ok=True)
                _require_private(path)
            self._private = True
        except OSError as error:
            self._give_up(f"{error.strerror or error}: {error.filename or folder}")

    def read(self, key: str) -> bytes | None:
        """Return the value of this key, or None if it is missing or damaged."""
        if not self._private:
            return None
        path = self._path / (key + _SUFFIX)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        content = data[_DIGEST:]
        if hashlib.sha256(content).digest() != data[:_DIGEST]:
            return None
        return content

    def write(self, key: str, content: bytes) -> None:
        """Write the value of this key atomically."""
        if self.problem is not None:
            return
        path = self._path / (key + _SUFFIX)
        temporary = path.with_suffix(f".{os.getpid()}-{os.urandom(4).hex()}")
        try:
            if not self._has_written:
                _empty_beyond(LARGEST, self.folder)
            self._has_written = True
            temporary.write_bytes(hashlib.sha256(content).digest() + content)
            temporary.replace(path)
        except OSError as error:
            self._give_up(f"{error.strerror or error}: {path.parent}")
            with contextlib.suppress(OSError):
                temporary.unlink()

    def _give_up(self, problem: str) -> None:
        self.problem = problem
        log.info("compiled code is not cached, so every start recompiles: %s", problem)


def _require_private(path: Path) -> None:
    """Raise PermissionError unless the folder is private to the user: its code is executed."""
    status = path.stat()
    if status.st_uid != os.geteuid():
        raise PermissionError(f"{path} belongs to another user")
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise PermissionError(f"{path} is accessible to other users; chmod 700 {path}")


def _empty_beyond(largest: int, folder: Path) -> None:
    """Delete all files if they exceed the limit: code of old versions is never read again."""
    files, total = [path for path in folder.glob("*/*") if _FILE.fullmatch(path.name)], 0
    for path in files:
        with contextlib.suppress(FileNotFoundError):  # just renamed by another process
            total += path.stat().st_size
    if total > largest:
        for path in files:
            path.unlink(missing_ok=True)
