"""The net under all tests, on suites of one test that do what tests must not do."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.limits import MAX_SLOWNESS, seconds, slowness, until
from tests.processes import alive

ROOT = Path(__file__).parent.parent
SLEEPERS = """
import os, subprocess, time
import tests.conftest
from pathlib import Path
import pytest

tests.conftest.GRACE = 0.2

def sleeper():
    process = subprocess.Popen(["sleep", "1234.5"], start_new_session=True)
    with Path(__file__).with_name("pids").open("a") as file:
        file.write(f"{process.pid}\\n")
    return process

def orphan():
    "Of a parent that has ended, in a session of its own."
    command = ["sh", "-c", "setsid sleep 1234.5 >&2 & echo $!"]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    with Path(__file__).with_name("pids").open("a") as file:
        file.write(found.stdout)
"""


def begin(folder: Path, test: str, *options: str) -> subprocess.Popen[str]:
    """A suite with the settings of this one."""
    (folder / "test_it.py").write_text(SLEEPERS + test)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "tests.conftest",
        "-c",
        ROOT / "pyproject.toml",
        "--rootdir",
        folder,
    ]
    command += ["-p", "no:cacheprovider", "-p", "pytest_timeout", "-p", "xdist", *options, folder / "test_it.py"]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # the others take longer than the tests
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def run(folder: Path, test: str, *options: str) -> tuple[int, str]:
    """The suite's exit code and what it printed."""
    process = begin(folder, test, *options)
    text, _ = process.communicate(timeout=seconds(60))
    return process.returncode, text


def sleepers(folder: Path) -> list[int]:
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def test_a_test_that_leaves_processes_behind_fails_and_they_end(tmp_path: Path) -> None:
    code, text = run(tmp_path, "def test_it():\n    sleeper()\n    orphan()\ndef test_next():\n    pass\n")
    pids = sleepers(tmp_path)
    assert code == 1 and "2 passed, 1 error" in text and "this test left 2 processes behind" in text
    assert len(pids) == 2 and all(f"{pid} sleep 1234.5" in text for pid in pids) and not alive(pids)


def test_processes_of_a_fixture_may_live_as_long_as_their_module(tmp_path: Path) -> None:
    fixture = "@pytest.fixture(scope='module')\ndef server():\n    process = sleeper()\n    yield process\n"
    tests = "def test_it(server):\n    pass\ndef test_next(server):\n    assert server.poll() is None\n"
    assert run(tmp_path, f"{fixture}    process.kill()\n{tests}")[0] == 0
    code, text = run(tmp_path, fixture + tests)
    assert code == 1 and "the fixtures of this module left 1 processes behind" in text and not alive(sleepers(tmp_path))


def test_a_limit_ends_the_test_with_its_stacks_and_its_processes(tmp_path: Path) -> None:
    test = "@pytest.mark.timeout(2)\ndef test_it():\n    orphan()\n    sleeper().wait()\ndef test_next():\n    pass\n"
    code, text = run(tmp_path, test)
    assert (
        code == 1
        and "1 failed, 1 passed, 1 error" in text
        and re.search(r"Timeout \(>\d\.\d+s\) from pytest-timeout", text)
    )
    assert "sleeper().wait()" in text and len(sleepers(tmp_path)) == 2 and not alive(sleepers(tmp_path))


@pytest.mark.parametrize(
    ("number", "options"),
    [
        (signal.SIGINT, ()),
        (signal.SIGTERM, ()),
        pytest.param(signal.SIGTERM, ("-n", "1"), marks=pytest.mark.slow),
    ],
)
def test_an_interrupted_suite_ends_what_it_started(tmp_path: Path, number: int, options: tuple[str, ...]) -> None:
    process = begin(tmp_path, "def test_it():\n    orphan()\n    sleeper().wait()\n", *options)
    pids = tmp_path / "pids"
    until("both sleep", lambda: pids.exists() and len(pids.read_text().split()) == 2, 60)
    process.send_signal(number)
    text, _ = process.communicate(timeout=seconds(60))
    assert process.returncode == 2 and "KeyboardInterrupt" in text and not alive(sleepers(tmp_path))


def test_what_a_dead_worker_of_xdist_left_ends_before_the_next_test(tmp_path: Path) -> None:
    """A worker that is killed, as when memory runs out, ends nothing itself."""
    dies = "def test_it():\n    orphan()\n    sleeper()\n    time.sleep(1)\n    os._exit(9)\n"
    sees = "def test_next():\n    time.sleep(1)\n    pids = Path(__file__).with_name('pids').read_text().split()\n"
    sees += "    assert len(pids) == 2 and not [pid for pid in pids if Path(f'/proc/{pid}').exists()]\n"
    code, text = run(tmp_path, dies + sees, "-n", "1")
    assert code == 1 and "1 failed, 1 passed" in text and "crashed while running" in text
    assert not alive(sleepers(tmp_path))


def test_limits_follow_the_load(monkeypatch: pytest.MonkeyPatch) -> None:
    cpus = len(os.sched_getaffinity(0))
    assert 1 <= slowness() <= MAX_SLOWNESS
    monkeypatch.setattr(os, "getloadavg", lambda: (3.0 * cpus, 0.0, 0.0))
    assert 3 <= slowness() <= MAX_SLOWNESS and seconds(10) >= 30
    monkeypatch.setattr(os, "getloadavg", lambda: (1000.0 * cpus, 0.0, 0.0))
    assert slowness() == MAX_SLOWNESS
