"""A lock on a folder that holds on the file systems of clusters: one process at a time has it.

Two things beside one another say that it is taken. A byte-range lock on the file of the lock goes with its process, and
through the server of NFS, Lustre or GPFS. But some mounts keep it on one node or refuse it, and a server may keep that
of a node that died. So a second file names the owner, which writes into it every `BEAT` seconds, and it alone decides.
The file of the lock has the token of the newest owner, also when that has ended.

An owner is dead if its machine says so, or if its file has not changed for `STALE` seconds while another looked at it
again and again; clocks of two machines are not compared. An owner that was suspended for so long finds another's name
in the file: it asks before it writes or deletes (`require_own`), and ends.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from busso.cards.base.files import temporary_beside
from busso.command.errors import UserError
from busso.command.lock.owner import Owner, OwnerWatch, identity, read_owner, this_process

BEAT = 20.0  # seconds between two signs of life
STALE = 180.0  # seconds without one, after which an owner of another machine is dead
POLL = 2.0  # seconds at most between two looks of one that waits
OWNER = ".owner"  # behind the name of the lock
# Answers of file systems that have no byte-range locks; 524 is ENOTSUPP, which the kernel should keep to itself.
NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS, 524}
_BUSY = {errno.EACCES, errno.EAGAIN}
_UNKNOWN = "unknown"  # an owner that cannot be read
_REQUEUE = 75  # a temporary failure: a job script puts its job back into the queue

log = logging.getLogger(__name__)

# A byte-range lock belongs to the whole process, and goes when any descriptor of the file is closed there.
_held: set[tuple[int, int, str]] = set()
_warned: set[tuple[int, int, str]] = set()
_registry = threading.Lock()
os.register_at_fork(after_in_child=_held.clear)


class InUseError(UserError):
    """Another process has the lock; the message names it, and the file to delete if it is gone."""

    who = ""  # has it


class LostError(UserError):
    """Another process has taken the lock over, since this one gave no sign of life.

    The exit code is not 75: the job may be the one that took over, and must not be put back into the queue.
    """


class Lock:
    """`path` is the file of the lock, in the folder that it guards; it stays there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.owner_file = path.with_name(path.name + OWNER)
        self._mutex = threading.RLock()
        self._me: Owner | None = None
        self._pid = self._beats = 0
        self._lost = False
        self._key = (0, 0, "")
        self._bytes: int | None = None  # the descriptor of the file of the lock
        self._name = -1  # the descriptor of the file with this process's name, wherever others move it
        self._sure = 0.0
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def acquire(
        self,
        seconds: float = 0.0,
        waits_for: Callable[[Owner | None], bool] = lambda owner: False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take it, from a dead owner too. Raises InUseError, and OSError where no file can be written.

        Waits up to `seconds` for any owner. For one that `waits_for` names it waits until there is a sign of life or
        the owner is dead, and says so. `stopped` ends the waiting.
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
        """Let others have it. Deletes nothing of another process that has taken over."""
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
        self._let_go()

    def owner(self) -> Owner | None:
        """The process that the file names now. Raises OSError when it cannot be read."""
        return read_owner(self._read() or b"")

    def require_own(self) -> None:
        """Raises LostError when another process has taken it over."""
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
        """Return whether the file still names this process. One that cannot be read for a short while is not lost."""
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
        """Result of the newest sign of life; costs nothing."""
        return self._lost

    def __enter__(self) -> Lock:
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()

    def _take(self, watch: OwnerWatch) -> bool:
        """Try once; what is in the way is then in `watch`."""
        found = self.path.parent.stat()
        self._key = (found.st_dev, found.st_ino, self.path.name)
        with _registry:
            if self._key in _held:
                watch.look(self._read(), 0.0, in_this_process=True)
                return False
            _held.add(self._key)
        try:
            taken = self._take_from_others(watch)
        except BaseException:
            self._let_go()
            raise
        if not taken:
            self._let_go()
        return taken

    def _take_from_others(self, watch: OwnerWatch) -> bool:
        free = self._lock_bytes()
        content = self._read()
        watch.look(content, 2 * POLL)  # while the file system hangs no owner grows old
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
        """Take the byte-range lock; returns whether no other process has it, also where there are no such locks."""
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
        """Name this process as the owner; False where another was quicker."""
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
        """Signs of life, into the file that this process made: in place of it there may be another's by now."""
        while not self._stop.wait(BEAT) and not self._lost:
            with self._mutex, suppress(OSError):
                assert self._me is not None
                self._beats += 1
                os.pwrite(self._name, self._me.as_bytes(self._beats), 0)
                os.fsync(self._name)
            self.still_own()

    def _is_named(self) -> bool:
        """Raises OSError when that cannot be read. A file that is missing is made again, unless another was there."""
        assert self._me is not None and self._bytes is not None
        token = self._me.token.encode()
        for _ in range(5):
            content = self._read()
            if content is not None:
                return identity(content) == token
            if os.pread(self._bytes, len(token), 0) != token:
                return False  # another had the lock, and has ended
            time.sleep(0.02)  # one that took it for a dead owner's puts it back
            before = self._name
            if self._create(self._me, self._beats):
                os.close(before)
        return False

    def _set_aside(self, whose: bytes) -> None:
        """Delete the file of the owner that has this identity, and no other's."""
        aside = temporary_beside(self.owner_file)
        with suppress(FileNotFoundError):
            self.owner_file.rename(aside)
            if identity(aside.read_bytes()) != whose and not self.owner_file.exists():
                aside.rename(self.owner_file)  # of one that came in between
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
            error.exit_code = _REQUEUE  # it still runs: on a node that Slurm does not reach
        return error

    def _let_go(self) -> None:
        if self._bytes is not None:
            os.close(self._bytes)
            self._bytes = None
        with _registry:
            _held.discard(self._key)


def in_job(owner: Owner | None) -> bool:
    """Return whether this process is a Slurm job: a job waits to see whether an owner is dead, a person does not."""
    return "SLURM_JOB_ID" in os.environ


def earlier_start(owner: Owner | None) -> bool:
    """Return whether the owner is an earlier start of this process's job, and not another process of this start."""
    return owner is not None and owner.is_earlier_start
