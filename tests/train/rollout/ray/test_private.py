"""A private Ray cluster is closed to all other users of the machine, and leaves nothing behind."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from busso.command.settings.checks import SettingsError
from busso.train.rollout.ray import private
from busso.train.rollout.ray.supervisor import descendants
from tests.errors import error_about
from tests.limits import until
from tests.train.processes import named, trainer

RUN = ("rollout=ray", "rollout.games=32", "rollout.workers=1", "checkpoint.every_episodes=1000000")
LOOPBACK = {"127.0.0.1", "::1", "::ffff:127.0.0.1"}


@pytest.fixture
def temporary() -> Iterator[Path]:
    """Return a short, empty folder for TMPDIR."""
    folder = Path("/tmp") / f"b{os.getpid()}"
    folder.mkdir()
    yield folder
    left = list(folder.iterdir())
    for path in left:
        private.remove(path)
    folder.rmdir()
    assert not left


def listening(pids: list[int]) -> dict[int, str]:
    """Return the addresses on which these processes listen, by TCP port."""
    found: dict[int, str] = {}
    for pid in pids:
        with suppress(psutil.NoSuchProcess):
            ends = psutil.Process(pid).net_connections("tcp")
            found |= {end.laddr.port: end.laddr.ip for end in ends if end.status == psutil.CONN_LISTEN}
    return found


# Asks the head of a cluster for its data, with the token if one is given.
_ASK = """
import sys
from ray._raylet import GcsClient
print(GcsClient(address=sys.argv[1]).internal_kv_keys(b"", b"session", timeout=10))
"""


def ask(address: str, token: str | None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    environment["HOME"] = "/nonexistent"
    if token is not None:
        environment |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token}
    return subprocess.run(
        [sys.executable, "-c", _ASK, address],
        check=False,
        capture_output=True,
        text=True,
        env=environment,
        timeout=100,
    )


@contextmanager
def training(tmp_path: Path, temporary: Path) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "home").mkdir()
    cache = os.environ.get("BUSSO_CACHE", str(Path.home() / ".cache" / "busso"))
    given = {"TMPDIR": str(temporary), "HOME": str(tmp_path / "home"), "BUSSO_CACHE": cache}
    with trainer(tmp_path / "runs", *RUN, **given) as process:
        yield process


# Reads files and lists folders as another user, which needs root, and reports the successes.
_READ = """
import os, sys
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
for path in sys.argv[1:]:
    try:
        os.listdir(path) if os.path.isdir(path) else open(path).read()
        print("open", path)
    except OSError:
        pass
"""


@pytest.mark.ray
@pytest.mark.slow  # a private cluster, accessed from outside
def test_no_other_user_reaches_a_cluster_of_ones_own(tmp_path: Path, temporary: Path) -> None:
    """It listens on loopback only and requires a token; token and folder are inaccessible to others."""
    with training(tmp_path, temporary) as process:
        everybody = descendants(process.pid)
        (gcs,) = named(process.pid, "gcs_server")
        ports = listening([process.pid, *everybody])
        assert len(ports) >= 5 and set(ports.values()) <= LOOPBACK, ports
        (folder,) = temporary.iterdir()
        assert folder.stat().st_mode & 0o077 == 0
        assert not list((tmp_path / "home").glob(".ray/*"))  # Ray's default place for its token, readable by all
        token = psutil.Process(gcs).environ()["RAY_AUTH_TOKEN"]
        for pid in everybody:
            with suppress(OSError):
                assert token not in Path(f"/proc/{pid}/cmdline").read_text()
        address = f"127.0.0.1:{listening([gcs]).popitem()[0]}"
        assert ask(address, token).returncode == 0
        without, wrong = ask(address, None), ask(address, "0" * 64)
        assert without.returncode and wrong.returncode
        assert re.search("(?i)unauthenticated|authentication", wrong.stderr), wrong.stderr
        if os.geteuid() == 0:
            paths = [str(folder), *(f"/proc/{pid}/environ" for pid in everybody)]
            command = [sys.executable, "-c", _READ, "/", *paths]
            found = subprocess.run(command, check=True, capture_output=True, text=True)
            assert found.stdout == "open /\n"
        # The end by a signal is tested in tests/train/rollout/ray/test_cluster.py.
        process.kill()
        process.wait()
        until("the folder of a killed trainer is gone", lambda: not list(temporary.iterdir()), 60)


def test_a_folder_is_open_to_its_user_alone(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(temporary))
    before = os.umask(0)
    try:
        folder = private.make()
    finally:
        os.umask(before)
    assert folder.parent == temporary and folder.stat().st_mode & 0o777 == 0o700
    private.remove(folder)
    assert not folder.exists()


def test_a_long_temporary_folder_gives_way_to_a_short_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray's sockets need short paths."""
    long = tmp_path / ("x" * 60)
    monkeypatch.setenv("RAY_TMPDIR", str(long))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(long))
    folder = private.make()
    assert folder.parent == Path("/tmp") and not long.exists()
    private.remove(folder)


def test_no_folder_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(private, "bases", lambda: [tmp_path / ("x" * 60), Path("/proc/1/x")])
    with error_about(SettingsError, "TMPDIR", "/proc/1/x"):
        private.make()


def test_only_folders_of_dead_processes_are_swept(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_TMPDIR", str(temporary))
    mine = private.make()
    ended = private.make()
    script = (
        "import sys, pathlib; from busso.train.rollout.ray import private; private.claim(pathlib.Path(sys.argv[1]))"
    )
    subprocess.run([sys.executable, "-c", script, str(ended)], check=True)
    (ended / "session").mkdir()
    copied = Path(shutil.copytree(ended, f"{ended} (copy)"))
    unclaimed, of_a_job = temporary / f"{private.PREFIX}new", temporary / "another"
    for folder in (unclaimed, of_a_job):
        folder.mkdir()
    elsewhere = temporary / f"{private.PREFIX}elsewhere"  # belongs to another machine or container
    elsewhere.mkdir()
    owner = json.loads((ended / private.OWNER).read_bytes())
    (elsewhere / private.OWNER).write_text(json.dumps(owner | {"boot": "another", "host": "another"}))
    private.sweep(temporary)
    assert {path.name for path in temporary.iterdir()} == {
        each.name for each in (mine, copied, unclaimed, of_a_job, elsewhere)
    }
    for folder in temporary.iterdir():
        private.remove(folder)
