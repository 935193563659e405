"""Signals that request a stop, as a process gets them; memory of a checkpoint."""

import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

import busso
from busso.train.run.signals import StopRequest
from tests.limits import seconds
from tests.train.memory import over_buffer

# Prints "ready", waits for a signal like a run, and prints how it ends.
WAITS = """
import fcntl, sys, termios, time
if sys.argv[1] == "terminal":
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from busso.train.run.signals import StopRequest
with StopRequest() as stop:
    print("ready", flush=True)
    end = time.monotonic() + 60
    while not stop.requested() and time.monotonic() < end:
        time.sleep(0.01)
    print("a line for a person", flush=True)
    print("and one for standard error", file=sys.stderr, flush=True)
    open(sys.argv[2], "w").write(str(stop.signal))
    sys.exit(stop.exit_code(again=True))
"""


def test_a_closed_terminal_ends_in_order(tmp_path: Path) -> None:
    """As when ssh disconnects: SIGHUP arrives, and later output is lost."""
    mine, theirs = pty.openpty()
    command = [sys.executable, "-c", WAITS, "terminal", str(tmp_path / "signal")]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True)
    os.close(theirs)
    said = b""
    while b"ready" not in said:
        said += os.read(mine, 1000)
    os.close(mine)
    assert process.wait(seconds(30)) == 128 + signal.SIGHUP
    assert (tmp_path / "signal").read_text() == str(int(signal.SIGHUP))


def test_a_second_stop_of_a_library_call_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second press of a notebook's stop button leaves the kernel alive; a command would exit."""
    ended = list[int]()
    monkeypatch.setattr(os, "_exit", ended.append)

    def stopped_twice(chosen: object) -> int:
        with StopRequest() as stop:
            signal.raise_signal(signal.SIGINT)
            assert stop.requested()
            signal.raise_signal(signal.SIGINT)
        return 0

    monkeypatch.setattr("busso.train.api.train", stopped_twice)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        busso.train_agent()
    assert not ended and signal.getsignal(signal.SIGINT) is before
    assert stopped_twice(None) == 0 and ended == [130]


def test_nohup_stays_nohup(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        command = [sys.executable, "-c", WAITS, "none", str(tmp_path / "signal")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGHUP)
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=seconds(30))
    assert process.returncode == 128 + signal.SIGTERM


ROWS = 2_500_000  # 125 bytes each


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_checkpoint_takes_as_much_as_the_buffer(tmp_path: Path) -> None:
    """A write allocates the copy; a read allocates the file, then its content."""
    saving, saved = over_buffer("save", tmp_path, ROWS)
    loading, loaded = over_buffer("load", tmp_path, ROWS)
    # Fluctuations in the smaller process are up to a fifth of this buffer.
    assert saved["buffer"] > 200e6 and 1.8 < saving <= 2.3 and 1.8 < loading <= 2.3
    assert (loaded["inserted"], loaded["total"]) == (saved["inserted"], saved["total"])
