"""Folder locks on file systems with locks, without locks, and with locks that have no effect."""

import errno
import fcntl
import itertools
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from busso.base import lock
from busso.base.lock import InUseError, LostError, Owner, in_job, read_owner, this_process
from tests.errors import error_about
from tests.limits import seconds, until

PRETEND = "fcntl.lockf = fcntl.flock = lambda *given: None"  # like a mount whose locks are local to a node
REFUSE = "def refused(*given): raise OSError(37, 'No locks available')\nfcntl.lockf = fcntl.flock = refused"
MOUNTS = {"locks": "", "pretended": PRETEND, "refused": REFUSE}
HOLDS = """
import fcntl, sys
from pathlib import Path
{mount}
from busso.base import lock
lock.BEAT = 0.05
held = lock.Lock(Path(sys.argv[1]))
try:
    held.acquire()
except lock.InUseError as error:
    print("refused:", error, flush=True)
    sys.exit(2)
print("held", flush=True)
sys.stdin.readline()
print(held.still_own(), flush=True)
held.release()
"""


@contextmanager
def holder(path: Path, mount: str = "locks") -> Iterator[subprocess.Popen[str]]:
    """Start a process that holds the lock until it reads a line."""
    command = [sys.executable, "-c", HOLDS.format(mount=MOUNTS[mount]), str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert line(process) == "held"
            yield process
        finally:
            process.kill()


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str]) -> str:
    """Let the process exit, and return whether it still had the lock."""
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return line(process)


def suspend(process: subprocess.Popen[str]) -> None:
    """Stop the process, and wait until none of its threads writes."""
    process.send_signal(signal.SIGSTOP)
    assert os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED)[1])


def mounted(monkeypatch: pytest.MonkeyPatch, mount: str) -> None:
    """Set up the mount in this process."""

    def refused(*given: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    if mount != "locks":
        monkeypatch.setattr(fcntl, "lockf", refused if mount == "refused" else lambda *given: None)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten minutes to less than a second."""
    monkeypatch.setattr(lock, "BEAT", 0.05)
    monkeypatch.setattr(lock, "STALE", 0.4)
    monkeypatch.setattr(lock, "POLL", 0.1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".lock"


def put(path: Path, **changes: Any) -> Owner:
    """Write the file of another owner."""
    found = replace(this_process(), **changes)
    path.with_name(path.name + ".owner").write_bytes(found.as_bytes(0))
    return found


AWAY = {"host": "node9", "boot": "another", "pid": 4711}


@pytest.mark.parametrize("mount", MOUNTS)
def test_a_second_process_is_refused_and_told_who_has_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, mount: str
) -> None:
    mounted(monkeypatch, mount)
    with holder(path, mount) as process:
        before = sorted(path.parent.iterdir())
        with error_about(InUseError, path.parent, f"process {process.pid} on ", f"delete {path}.owner"):
            lock.Lock(path).acquire()
        assert sorted(path.parent.iterdir()) == before
        assert tell(process) == "True"
        process.wait(seconds(10))
    with lock.Lock(path):
        assert path.with_name(".lock.owner").exists()
    assert [each.name for each in path.parent.iterdir()] == [".lock"]


def test_a_file_system_without_byte_range_locks_is_said(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mounted(monkeypatch, "refused")
    for _ in range(2):
        with lock.Lock(path):
            assert "No locks available" in caplog.text and caplog.text.count("\n") == 1


@pytest.mark.parametrize("failing", [1, 2], ids=["owner", "lock"])
def test_a_full_disk_leaves_no_owner(path: Path, monkeypatch: pytest.MonkeyPatch, failing: int) -> None:
    """The last block may go to one file and leave none for the other."""
    write, calls = os.pwrite, itertools.count(1)

    def full(*given: Any) -> int:
        if next(calls) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(*given)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(os, "pwrite", full)
        lock.Lock(path).acquire()
    assert [each.name for each in path.parent.iterdir()] == [".lock"]


@pytest.mark.parametrize("mount", ["locks", "pretended"])
def test_what_kill_9_leaves_is_taken_over_at_once(path: Path, monkeypatch: pytest.MonkeyPatch, mount: str) -> None:
    mounted(monkeypatch, mount)
    with holder(path, mount) as process:
        process.kill()
        process.wait()
        assert path.with_name(".lock.owner").exists()
        with lock.Lock(path) as held:
            assert held.still_own()


def test_one_process_has_it_once(path: Path) -> None:
    with lock.Lock(path):
        with error_about(InUseError, path.parent, "this process"):
            lock.Lock(path).acquire()
        with lock.Lock(path.with_name(".other.lock")):
            pass
        assert subprocess.run([sys.executable, "-c", HOLDS.format(mount=""), path], check=False).returncode == 2
    with lock.Lock(path):
        pass


@pytest.mark.parametrize(
    ("changes", "ended"),
    [
        ({}, False),
        ({"started": 1}, True),  # the process number came again
        ({"boot": "another"}, True),  # this machine was restarted
        ({"boot": "another", "host": "node9"}, False),
        ({"boot": "another", "namespace": "pid:[1]"}, False),  # a container with this name on another machine
        ({"namespace": "pid:[1]", "pid": 1 << 22}, False),  # process ids of another container have no meaning
        ({"pid": (1 << 22) + 1}, True),  # greater than any process id
    ],
)
def test_what_is_known_of_owners(changes: dict[str, Any], ended: bool) -> None:
    assert replace(this_process(), **changes).has_ended() == ended


def test_without_a_job_nothing_is_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    put(path, **AWAY)
    started = time.monotonic()
    with error_about(InUseError, path.parent, "process 4711 on node9", f"delete {path}.owner"):
        lock.Lock(path).acquire(waits_for=in_job)
    assert time.monotonic() - started < 1
    path.with_name(".lock.owner").unlink()
    lock.Lock(path).acquire()


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("job", "content"),
    [("7", None), ("8", None), ("8", b"{"), ("8", b"\xff")],
    ids=["own", "other", "cut off", "no text"],
)
def test_a_job_takes_over_from_a_dead_owner(
    path: Path, monkeypatch: pytest.MonkeyPatch, job: str, content: bytes | None, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever its file contains, and whether it belongs to the same job or another."""
    put(path, **AWAY, job="7")
    if content is not None:
        path.with_name(".lock.owner").write_bytes(content)
    monkeypatch.setenv("SLURM_JOB_ID", job)
    held = lock.Lock(path)
    held.acquire(waits_for=in_job)
    assert held.still_own()
    held.release()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 2 and str(path.parent) in said[0] and "without a heartbeat" in said[0]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(("job", "code"), [("7", 75), ("8", 2)])
def test_a_restarted_job_does_not_fight_an_owner_that_lives(
    path: Path, monkeypatch: pytest.MonkeyPatch, job: str, code: int
) -> None:
    """An earlier start of the same job may live on a node that Slurm cannot reach: the job tries again later."""
    monkeypatch.setattr(lock, "STALE", 30.0)
    monkeypatch.setenv("SLURM_JOB_ID", job)
    with holder(path, "pretended") as process:
        mounted(monkeypatch, "pretended")
        monkeypatch.setenv("SLURM_JOB_ID", "7")
        monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
        with error_about(InUseError, path.parent, f"process {process.pid} on ") as caught:
            lock.Lock(path).acquire(waits_for=in_job)
        assert isinstance(caught.value, InUseError) and caught.value.exit_code == code
        assert tell(process) == "True"


@pytest.mark.usefixtures("quick")
def test_what_stops_a_job_ends_its_waiting(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "STALE", 60.0)
    put(path, **AWAY)
    looks = iter(range(10))
    with error_about(InUseError, path.parent):
        lock.Lock(path).acquire(waits_for=lambda owner: True, stopped=lambda: next(looks) == 3)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("mount", ["locks", "pretended"])
def test_a_suspended_owner_that_lost_it_sees_that_and_deletes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, mount: str
) -> None:
    """As on a server that keeps the byte-range lock of a dead machine."""
    mounted(monkeypatch, mount)
    with holder(path, mount) as process:
        suspend(process)
        held = lock.Lock(path)
        held.acquire(waits_for=lambda owner: True)
        process.send_signal(signal.SIGCONT)
        assert tell(process) == "False"
        process.wait(seconds(10))
        time.sleep(0.1)
        owner = read_owner(path.with_name(".lock.owner").read_bytes())
        assert held.still_own() and owner is not None and owner.pid == os.getpid()
        held.release()


@pytest.mark.usefixtures("quick")
def test_one_that_lost_it_says_so_in_one_line(path: Path) -> None:
    held = lock.Lock(path)
    held.acquire()
    held.require_own()
    mine = path.with_name(".lock.owner").read_bytes()
    path.with_name(".lock.owner").unlink()
    put(path, **AWAY)
    with error_about(LostError, path.parent, "process 4711 on node9") as caught:
        held.require_own()
    assert (
        isinstance(caught.value, LostError) and caught.value.exit_code == 2
    )  # not 75: the same job may have taken over
    until("the heartbeat saw it", lambda: held.lost, 5, 0.01)
    path.with_name(".lock.owner").write_bytes(mine)
    assert not held.still_own(), "what is lost stays lost"
    put(path, **AWAY)
    held.release()
    assert b"node9" in path.with_name(".lock.owner").read_bytes()


def test_of_many_that_find_a_dead_owner_one_has_it(path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    put(path, pid=ended.pid, started=7)
    command = [sys.executable, "-c", HOLDS.format(mount=PRETEND), str(path)]
    many = [subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(5)]
    said = [line(each) for each in many]
    assert sorted(text.partition(":")[0] for text in said) == ["held", *["refused"] * 4]
    (winner,) = (each for each, text in zip(many, said, strict=True) if text == "held")
    assert tell(winner) == "True"
    for each in many:
        each.communicate(timeout=seconds(10))


def test_a_forked_child_does_not_end_what_its_parent_holds(path: Path) -> None:
    with lock.Lock(path) as held:
        if (child := os.fork()) == 0:
            code = 1
            held.release()
            try:
                lock.Lock(path).acquire()
            except InUseError:
                code = 0
            os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert held.still_own()


def test_nothing_in_the_file_of_another_speaks_to_the_terminal(path: Path) -> None:
    put(path, **AWAY | {"host": "a\x1b[2Jb\n" + "c" * 1000})
    with pytest.raises(InUseError) as caught:
        lock.Lock(path).acquire()
    text = str(caught.value)
    assert "\x1b" not in text and "\n" not in text and len(text) < 500
