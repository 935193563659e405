"""Lock on a folder that works on cluster file systems: one process at a time, its owner, holds it.

Two things mark the lock as taken. A byte-range lock on the lock file ends with its process, and works across nodes on
NFS, Lustre or GPFS. But some mounts keep it local to one node or refuse it, and a server may keep the lock of a dead
node. So a second file, which decides, names the owner, and the owner writes to it every `BEAT` seconds. The lock file
holds the token of the latest owner, even after that owner has ended.

An owner is dead if its machine says so, or if its file has not changed for `STALE` seconds while a waiting process kept
polling it; clocks of two machines are not compared. An owner that was suspended for that long finds another name in the
file: it checks before it writes or deletes (`require_own`), and ends.
"""

from __future__ import annotations

import errno
import fcntl
import json
import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from pathlib import Path
from typing import Any

from busso.base.errors import EXIT_REQUEUE, UserError
from busso.base.files import is_running, temporary_beside

_PROC = Path("/proc")
_FIRST_NAMESPACE = "pid:[4026531836]"  # of processes outside containers, the same on all machines
_LONGEST = 1 << 16  # bytes of an owner file; a real one has a few hundred
BEAT = 20.0  # seconds between heartbeats
STALE = 180.0  # seconds without a heartbeat after which an owner on another machine is dead
POLL = 2.0  # maximum seconds between polls of a waiting process
OWNER = ".owner"  # suffix of the lock's name
# Errors of file systems without byte-range locks; 524 is ENOTSUPP, a kernel-internal code that can leak to user space.
NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, 524}
_BUSY = {errno.EACCES, errno.EAGAIN}
_UNKNOWN = "unknown"  # an owner that cannot be parsed
log = logging.getLogger(__name__)
# A byte-range lock belongs to the whole process, and is lost when any of its descriptors of the file is closed.
_held: set[tuple[int, int, str]] = set()
_warned: set[tuple[int, int, str]] = set()
_registry = threading.Lock()


class InUseError(UserError):
    """Lock held by another process; the message names the process, and the file to delete if it is gone."""

    who = ""  # the holder


class LostError(UserError):
    """Lock taken over after a missing heartbeat. Not exit code 75: this may be the same job, already requeued."""


class Lock:
    """Lock whose file `path` is in the folder that it guards; the file is never deleted."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.owner_file = path.with_name(path.name + OWNER)
        self._mutex = threading.RLock()
        self._me: Owner | None = None
        self._pid = self._beats = 0
        self._lost = False
        self._key = (0, 0, "")
        self._bytes: int | None = None  # descriptor of the lock file
        self._name = -1  # descriptor of the owner file, valid even if others rename it
        self._sure = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(
        self,
        seconds: float = 0.0,
        waits_for: Callable[[Owner | None], bool] = lambda owner: False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take the lock, also from a dead owner. Raises InUseError, or OSError where no file can be written.

        Waits up to `seconds` for any owner. If `waits_for(owner)`, it says so and waits until a heartbeat comes or the
        owner is dead. `stopped` ends the waiting.
        """
        watch, begun, pause, said = OwnerWatch(), time.monotonic(), POLL / 64, False
        while not self._take(watch):
            owner, patient = watch.owner, time.monotonic() - begun < seconds
            hopes = watch.unchanged and not watch.in_this_process and waits_for(owner)
            if stopped() or not (patient or hopes):
                raise self._in_use(watch)
            if hopes and not said:
                rule = f"will be taken over after {STALE:.0f} s without a heartbeat"
                said = True
                print(f"{self.path.parent}: in use ({owner or _UNKNOWN}); {rule}", file=sys.stderr)
            pause = min(pause * 1.5, POLL)
            time.sleep(pause)
        if said:
            print(f"{self.path.parent}: taken over", file=sys.stderr)

    def release(self) -> None:
        """Release the lock; deletes no file of a process that has taken over."""
        if self._me is None or self._pid != os.getpid():
            return
        self._stop.set()
        if self._thread is not None:
            self._thread.join()
        with self._mutex, suppress(OSError):
            if self.still_own():
                self._set_aside(self._me.token.encode())
        self._me = None
        os.close(self._name)
        self._release_bytes()

    def owner(self) -> Owner | None:
        """Return the process that the owner file names now. Raises OSError if it cannot be read."""
        return read_owner(self._read() or b"")

    def require_own(self) -> None:
        """Raise LostError if another process has taken the lock over."""
        if not self.still_own():
            owner = None
            with suppress(OSError):
                owner = self.owner()
            raise LostError(
                self.path.parent,
                f"another process took over while this one sent no heartbeat ({owner or _UNKNOWN})",
                "this process wrote nothing after that",
            )

    def still_own(self) -> bool:
        """Return whether the file still names this process; a file unreadable for a short while counts as own."""
        with self._mutex:
            if self._lost or self._me is None or self._pid != os.getpid():
                return False
            try:
                self._lost = not self._is_named()
            except OSError:
                return time.monotonic() - self._sure < STALE
            self._sure = time.monotonic()
            return not self._lost

    @property
    def lost(self) -> bool:
        """Result of the latest heartbeat, without file access."""
        return self._lost

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def _take(self, watch: OwnerWatch) -> bool:
        """Try once; on failure `watch` describes the obstacle."""
        found = self.path.parent.stat()
        self._key = (found.st_dev, found.st_ino, self.path.name)
        with _registry:
            if self._key in _held:
                watch.look(self._read(), 0.0, in_this_process=True)
                return False
            _held.add(self._key)
        taken = False
        try:
            taken = self._take_from_others(watch)
        finally:
            if not taken:
                self._release_bytes()
        return taken

    def _take_from_others(self, watch: OwnerWatch) -> bool:
        free = self._lock_bytes()
        content = self._read()
        watch.look(content, 2 * POLL)  # while the file system hangs, an owner does not age
        silent = watch.silence >= STALE
        if not free and not silent:
            return False
        if content is not None:
            if not silent and not (watch.owner is not None and watch.owner.has_ended()):
                return False
            self._set_aside(identity(content))
        me = this_process()
        if not self._create(me, 0):
            return False
        self._me, self._pid, self._beats, self._lost = me, os.getpid(), 0, False
        self._sure = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._live, name="lock", daemon=True)
        self._thread.start()
        return True

    def _lock_bytes(self) -> bool:
        """Take the byte-range lock; return True unless another process holds it, also where there are no such locks."""
        self._bytes = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.lockf(self._bytes, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _BUSY:
                return False
            if error.errno not in NO_LOCKS:
                raise
            if self._key not in _warned:
                _warned.add(self._key)
                log.warning("%s: no byte-range locks (%s); only %s protects the run", self.path, error.strerror, OWNER)
        return True

    def _create(self, me: Owner, beat: int) -> bool:
        """Create the owner file for this process; False if another process was faster."""
        try:
            descriptor = os.open(self.owner_file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            return False
        try:
            os.pwrite(descriptor, me.as_bytes(beat), 0)
            os.fsync(descriptor)
            assert self._bytes is not None
            os.pwrite(self._bytes, me.token.encode(), 0)
        except BaseException:
            os.close(descriptor)
            self.owner_file.unlink(missing_ok=True)
            raise
        self._name = descriptor
        return True

    def _live(self) -> None:
        """Send heartbeats through this process's descriptor: the path may already name another owner's file."""
        while not self._stop.wait(BEAT) and not self._lost:
            with self._mutex, suppress(OSError):
                assert self._me is not None
                self._beats += 1
                os.pwrite(self._name, self._me.as_bytes(self._beats), 0)
                os.fsync(self._name)
            self.still_own()

    def _is_named(self) -> bool:
        """Return whether the file names this process, after recreating its own if missing. Raises OSError."""
        assert self._me is not None and self._bytes is not None
        token = self._me.token.encode()
        for _ in range(5):
            content = self._read()
            if content is not None:
                return identity(content) == token
            if os.pread(self._bytes, len(token), 0) != token:
                return False  # another process held the lock and has ended
            time.sleep(0.02)  # a process that set it aside as a dead owner's puts it back
            before = self._name
            if self._create(self._me, self._beats):
                os.close(before)
        return False

    def _set_aside(self, whose: bytes) -> None:
        """Delete the owner file if its owner has this identity."""
        aside = temporary_beside(self.owner_file)
        with suppress(FileNotFoundError):
            self.owner_file.rename(aside)
            if identity(aside.read_bytes()) != whose and not self.owner_file.exists():
                aside.rename(self.owner_file)  # it belongs to a process that came in between
            aside.unlink(missing_ok=True)

    def _read(self) -> bytes | None:
        try:
            return self.owner_file.read_bytes()
        except FileNotFoundError:
            return None

    def _in_use(self, watch: OwnerWatch) -> InUseError:
        who = "this process" if watch.in_this_process else str(watch.owner or _UNKNOWN)
        file = self.path if watch.empty else self.owner_file  # a server may keep the byte-range lock of a dead machine
        error = InUseError(self.path.parent, f"in use ({who})", f"if that process is gone, delete {file}")
        error.who = who
        if earlier_start(watch.owner):
            error.exit_code = EXIT_REQUEUE  # it still runs, on a node that Slurm cannot reach
        return error

    def _release_bytes(self) -> None:
        if self._bytes is not None:
            os.close(self._bytes)
            self._bytes = None
        with _registry:
            _held.discard(self._key)


def in_job(owner: Owner | None) -> bool:
    """Return whether this process is a Slurm job: a job waits to see whether an owner is dead, a person does not."""
    return "SLURM_JOB_ID" in os.environ


def earlier_start(owner: Owner | None) -> bool:
    """Return whether the owner is an earlier start of this process's job, not another process of this start."""
    job = os.environ.get("SLURM_JOB_ID")
    return owner is not None and bool(job) and owner.job == job and owner.restarts < restarts()


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
        text = f"process {self.pid} on {self.host}{job}, since {self.since}"
        return "".join(letter if letter.isprintable() else "?" for letter in text)[
            :200
        ]  # perhaps of another user's file


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


os.register_at_fork(after_in_child=_held.clear)
