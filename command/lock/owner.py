"""Owner of a lock, as recorded in the owner file, and whether its process still runs."""

import json
import os
import secrets
import socket
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from busso.cards.base.files import is_running

_PROC = Path("/proc")
_FIRST_NAMESPACE = "pid:[4026531836]"  # of processes outside containers, the same on all machines
_LONGEST = 1 << 16  # bytes of an owner file; a real one has a few hundred


@dataclass(frozen=True)
class Owner:
    """Process on a machine, identified uniquely."""

    token: str  # of this hold on the lock
    host: str
    boot: str  # changes at each boot of the machine; empty if unknown
    namespace: str  # PID namespace
    pid: int
    started: int  # ticks since boot, because PIDs are reused; -1 if unknown
    job: str  # Slurm's job id; empty outside a job
    restarts: int  # of the job
    since: str  # time, for people

    def has_ended(self) -> bool:
        """Return whether the process is known to have ended. One on another machine may still run."""
        boot, namespace = _boot(), _namespace()
        if (self.boot, self.namespace) == (boot, namespace) and (boot or self.host == socket.gethostname()):
            return not _runs(self.pid, self.started)
        started_again = self.boot != boot and self.host == socket.gethostname()
        # A container may share its host name with one that still runs elsewhere.
        return started_again and self.namespace == namespace == _FIRST_NAMESPACE

    def as_bytes(self, beat: int) -> bytes:
        """Encode as a line of JSON, of equal length for every `beat`."""
        seen = datetime.now().astimezone().isoformat(timespec="seconds")
        return json.dumps(asdict(self) | {"beat": f"{beat:012d}", "seen": seen}).encode() + b"\n"

    def __str__(self) -> str:
        job = f", job {self.job}" if self.job else ""
        return _printable(f"process {self.pid} on {self.host}{job}, since {self.since}")


def this_process() -> Owner:
    """Return this process as an owner with a new token."""
    return Owner(
        token=secrets.token_hex(8),
        host=socket.gethostname(),
        boot=_boot(),
        namespace=_namespace(),
        pid=os.getpid(),
        started=_started(os.getpid()),
        job=os.environ.get("SLURM_JOB_ID", ""),
        restarts=restarts(),
        since=datetime.now().astimezone().isoformat(timespec="seconds"),
    )


def restarts() -> int:
    """Return the number of times that Slurm has requeued the job of this process; 0 outside a job."""
    count = os.environ.get("SLURM_RESTART_COUNT", "")
    return int(count) if count.isdecimal() else 0


def read_owner(content: bytes) -> Owner | None:
    """Parse the output of `as_bytes`; None for anything else."""
    try:
        found = json.loads(content[:_LONGEST])
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, Mapping):
        return None
    values: dict[str, Any] = {field.name: found.get(field.name) for field in fields(Owner)}
    kinds = {"pid": int, "started": int, "restarts": int}
    return Owner(**values) if all(type(values[name]) is kinds.get(name, str) for name in values) else None


def identity(content: bytes) -> bytes:
    """Return a key that distinguishes one hold on a lock from another; heartbeats do not change it."""
    owner = read_owner(content)
    return content if owner is None else owner.token.encode()


class OwnerWatch:
    """A waiting process's record of the owner, timed by its own clock."""

    def __init__(self) -> None:
        self.owner: Owner | None = None
        self.unchanged = True  # since the first look
        self.silence = 0.0  # seconds without an observed change
        self.in_this_process = False
        self._content: bytes | None = None
        self._looked: float | None = None

    def look(self, content: bytes | None, most: float, in_this_process: bool = False) -> None:
        """Record the content of the owner file; `silence` grows by at most `most` seconds."""
        now = time.monotonic()
        if self._looked is not None and content == self._content:
            self.silence += min(now - self._looked, most)
        else:
            self.unchanged = self._looked is None
            self.silence = 0.0
        self._content, self._looked, self.in_this_process = content, now, in_this_process
        self.owner = read_owner(content) if content else None

    @property
    def empty(self) -> bool:
        """True if no file names an owner."""
        return self._content is None


def _runs(pid: int, started: int) -> bool:
    now = _started(pid)
    return is_running(pid) and (-1 in (now, started) or now == started)


def _started(pid: int) -> int:
    """Return the start of a process in ticks since boot; 0 for a zombie, -1 if unknown."""
    try:
        state, *numbers = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except (OSError, ValueError):
        return -1
    return 0 if state in "ZX" else int(numbers[18])


def _boot() -> str:
    try:
        return (_PROC / "sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _namespace() -> str:
    try:
        return str((_PROC / "self/ns/pid").readlink())
    except OSError:
        return ""


def _printable(text: str) -> str:
    """Replace unprintable characters: the text may come from another user's file."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)[:200]
