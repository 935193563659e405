"""System calls of Linux, and the alternatives on macOS."""

import mmap
import os
import signal
import subprocess
import sys

import pytest

from busso.base import system
from tests.field.other_system.hidden import HIDDEN
from tests.limits import until
from tests.processes import alive

CHILD = """
import os, sys, time
from busso.base.system import end_with_parent
print(os.getpid(), end_with_parent(int(sys.argv[1]), int(sys.argv[2])), flush=True)
time.sleep(60)
"""
STARTS = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", *sys.argv[2:], str(os.getpid()), sys.argv[1]])
"""
EVERYWHERE = pytest.mark.parametrize("environment", [{}, HIDDEN], ids=["linux", "elsewhere"])


@EVERYWHERE
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_its_parent(number: int, environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", STARTS, str(int(number)), CHILD]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment)
    assert parent.stdout is not None
    child, begins = parent.stdout.readline().split()
    assert begins == "True" and alive([int(child)])
    parent.kill()
    parent.wait()
    until("the end of the child", lambda: not alive([int(child)]), 10, every=0.01)


@EVERYWHERE
def test_a_child_whose_parent_has_ended_already_is_told(environment: dict[str, str]) -> None:
    command = [sys.executable, "-c", CHILD, "1", str(int(signal.SIGKILL))]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | environment)
    with child:
        assert child.stdout is not None
        said = child.stdout.readline()
        child.kill()
    # When a thread checks, the process may have ended before it could print.
    assert said.endswith(" False\n") or (environment and child.returncode == -signal.SIGKILL)


def test_all_processes_have_the_parents_that_ps_says() -> None:
    """Both ways agree on processes that live through both, except for orphans."""
    with subprocess.Popen(["sleep", "60"]) as child:
        by_kernel, by_ps = system.parents(), system._parents_by_ps()
        child.kill()
    assert by_kernel[child.pid] == by_ps[child.pid] == os.getpid()
    assert by_kernel[os.getpid()] == by_ps[os.getpid()] == os.getppid()


def test_the_leader_of_a_session_stands_for_the_parent_that_an_orphan_lost() -> None:
    starts = "import subprocess; print(subprocess.Popen(['sleep', '60'], stdout=subprocess.DEVNULL).pid, flush=True)"
    leads = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {starts!r}]); input()"
    leader = subprocess.Popen(
        [sys.executable, "-c", leads], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    with leader:
        assert leader.stdout is not None
        orphan = int(leader.stdout.readline())
        until("it is an orphan", lambda: system.parents()[orphan] == os.getpid(), 10)
        assert system._parents_by_ps()[orphan] == leader.pid
        os.kill(orphan, signal.SIGKILL)


def test_shared_memory_and_cpus_without_what_linux_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    monkeypatch.delattr(os, "sched_getaffinity")
    assert system.usable_cpus() == os.cpu_count()
    file = system.shared_file()
    os.ftruncate(file, 8192)
    ours = mmap.mmap(file, 8192)
    theirs = f"import mmap; mmap.mmap({file}, 8192)[8000] = 7"
    subprocess.run([sys.executable, "-c", theirs], pass_fds=[file], check=True)
    assert ours[8000] == 7 and os.fstat(file).st_nlink == 0
    ours.close()
    os.close(file)


FAULTS = """
import resource, sys
import numpy as np
from busso.base.system import keep_freed_memory
print(keep_freed_memory() if sys.argv[1] == "keep" else "")
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
np.ones(1 << 21), np.ones(1 << 21)
before = faults()
for _ in range(20):
    np.ones(1 << 21) + np.ones(1 << 21)  # 16 MiB each
print(faults() - before)
"""


def _faults(how: str, **environment: str) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    command = [sys.executable, "-c", FAULTS, how]
    return subprocess.run(command, capture_output=True, text=True, env=kept | environment, check=True).stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="malloc of glibc")
def test_freed_memory_is_used_again() -> None:
    kept, faults = _faults("keep")
    assert kept == "True" and int(faults) * 10 < int(_faults("default")[-1])


@pytest.mark.parametrize("setting", [{"MALLOC_ARENA_MAX": "2"}, {"GLIBC_TUNABLES": "glibc.malloc.trim_threshold=9"}])
def test_a_malloc_that_the_user_configures_stays(setting: dict[str, str]) -> None:
    assert _faults("keep", **setting)[0] == "False"
