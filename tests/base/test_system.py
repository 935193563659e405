"""System calls of Linux and the alternatives on macOS, limits of containers, safe files, and bounds of numbers."""

import errno
import math
import mmap
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import pytest

from busso.base import files, system
from busso.base.bounds import Bounds, check_bounds
from busso.base.errors import InputError
from busso.base.files import (
    NumberedFiles,
    create_unused,
    delete_left_over,
    replacing,
    sync_folder,
    temporary_beside,
    write_atomic,
)
from tests.errors import error_about
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


def parents_by_ps() -> dict[int, int]:
    """Return the parents that are found on a system without /proc."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "is_dir", lambda path: False)
        return system.parents()


def test_all_processes_have_the_parents_that_ps_says() -> None:
    """Both ways agree on processes that live through both, except for orphans."""
    with subprocess.Popen(["sleep", "60"]) as child:
        by_kernel, by_ps = system.parents(), parents_by_ps()
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
        assert parents_by_ps()[orphan] == leader.pid
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


def test_a_file_gets_its_new_content(tmp_path: Path) -> None:
    write_atomic(tmp_path / "a.txt", "accuso è buono\n")
    assert (tmp_path / "a.txt").read_bytes() == "accuso è buono\n".encode()
    write_atomic(tmp_path / "a.txt", b"\x00\xff")
    assert (tmp_path / "a.txt").read_bytes() == b"\x00\xff"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("error", [RuntimeError("half way"), KeyboardInterrupt(), OSError(errno.ENOSPC, "no space")])
def test_what_fails_half_way_leaves_the_file_as_it_was(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "a.txt"
    path.write_text("before")
    with pytest.raises(type(error)), replacing(path) as temporary:
        temporary.write_text("half")
        raise error
    assert path.read_text() == "before" and [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_names_the_file_and_not_the_one_beside_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_atomic(tmp_path / "missing" / "a.txt", "text")
    assert caught.value.filename == str(tmp_path / "missing" / "a.txt")


@pytest.mark.parametrize(("number", "raised"), [(errno.EINVAL, False), (errno.ENOTSUP, False), (errno.EIO, True)])
def test_a_file_system_that_cannot_sync_folders_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, raised: bool
) -> None:
    def refuse(descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", refuse)
    if raised:
        with pytest.raises(OSError, match="Input/output error"):
            sync_folder(tmp_path)
    else:
        sync_folder(tmp_path)


def test_only_what_no_process_will_finish_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    own, numbers = temporary_beside(tmp_path / "own"), f".{os.getpid()}.7.tmp"
    gone = own.with_name(own.name.replace(f".{os.getpid()}.", f".{ended.pid}."))
    living = own.with_name(own.name.replace(f".{os.getpid()}.", f".{os.getppid()}."))
    monkeypatch.setattr(files.socket, "gethostname", lambda: "node2.of.a.cluster")
    there, old = temporary_beside(tmp_path / "there"), temporary_beside(tmp_path / "old")
    monkeypatch.undo()
    strange, notes = tmp_path / f".x{numbers}", tmp_path / "notes.txt"
    synchronised = tmp_path / ".syncthing.notes.txt.tmp"
    for path in (own, gone, living, there, old, strange, notes, synchronised):
        path.write_text("half")
    hours_ago = time.time() - 2 * 3600
    for path in (old, notes, synchronised):
        os.utime(path, (hours_ago, hours_ago))
    delete_left_over(tmp_path)
    assert set(tmp_path.iterdir()) == {living, there, strange, notes, synchronised}


def test_numbered_files_are_found_by_the_name_that_they_were_written_by(tmp_path: Path) -> None:
    numbered = NumberedFiles("part_", 3, ".pt")
    assert numbered.newest_first(tmp_path / "missing") == []
    for number in (7, 1000, 999):
        (tmp_path / numbered.name(number)).touch()
    copies = ("part_2000_backup.pt", "part_2000 (1).pt", "part_2000.sync-conflict-20260101-120000-ABCDEFG.pt")
    for name in (*copies, "._part_2000.pt", "part_02000.pt", "part_8.pt", "part_٢٠٠٠.pt", "part_2000xpt", "part_.pt"):
        (tmp_path / name).touch()
    assert [path.name for path in numbered.newest_first(tmp_path)] == ["part_1000.pt", "part_999.pt", "part_007.pt"]


def test_each_of_several_gets_a_name_of_its_own(tmp_path: Path) -> None:
    folders = [create_unused(tmp_path / "new" / "20260101-120000", Path.mkdir).name for _ in range(3)]
    assert folders == ["20260101-120000", "20260101-120000-2", "20260101-120000-3"]
    file = tmp_path / "new" / "a.json"
    file.mkdir()
    assert create_unused(file, partial(Path.touch, exist_ok=False)) == tmp_path / "new" / "a-2.json"


@dataclass
class Numbers:
    count: Annotated[int, Bounds(1, 10)] = 3
    share: Annotated[float, Bounds(0.0, 1.0, above=True)] = 0.5
    limit: Annotated[float, Bounds(0.0, 100.0, below=True, words=(math.inf,))] = 10.0
    games: Annotated[int | None, Bounds(1, 10, words=(None,))] = None
    decks: Annotated[int | str, Bounds(1, 8, words=("infinite",))] = "infinite"
    widths: Annotated[list[int], Bounds(1, 10)] = field(default_factory=lambda: [1, 2])
    mix: Annotated[dict[str, float], Bounds(0.0, 1.0)] = field(default_factory=lambda: {"a": 1.0})
    free: float = 1.0


GOOD = {
    "count": [1, 10],
    "share": [5e-324, 1.0, 1],
    "limit": [0.0, -0.0, 99.9, math.inf],
    "games": [None, 1, 10],
    "decks": ["infinite", 1, 8],
    "widths": [[], [1, 10]],
    "mix": [{}, {"a": 0.0, "b": 1}],
    "free": [math.nan, -1e300],
}
NEVER = [math.nan, -math.inf, True, "5", 10**30, -(2**63), [True], b"1"]
BAD = {
    "count": [0, 11, None, 2.0, math.inf],
    "share": [0.0, -0.0, math.nextafter(1, 2), math.inf],
    "limit": [-5e-324, 100.0, None],
    "games": [0, 11],
    "decks": [0, 9, None, "many"],
    "widths": [[0], [1, 11], [2.0], [None]],
    "mix": [{"a": 1.0, "b": math.nan}, {"a": -0.1}],
    "free": [],
}


@pytest.mark.parametrize("name", GOOD)
def test_numbers_in_and_out_of_bounds(name: str) -> None:
    for value in GOOD[name]:
        check_bounds("group", Numbers(**{name: value}))
    for value in [*BAD[name], *(NEVER if BAD[name] else [])]:
        with error_about(InputError, f"group.{name}"):
            check_bounds("group", Numbers(**{name: value}))
    check_bounds("", Numbers())


def test_the_line_says_what_may_be() -> None:
    def line(**values: object) -> str:
        with pytest.raises(InputError) as caught:
            check_bounds("", Numbers(**values))  # type: ignore[arg-type]
        return str(caught.value)

    assert line(count=11) == "count: expected an integer from 1 to 10, not 11"
    assert line(share=0.0) == "share: expected more than 0, at most 1, not 0.0"
    assert line(limit=-1.0) == "limit: expected 0 or more, less than 100, or inf, not -1.0"
    assert line(games=0) == "games: expected an integer from 1 to 10, or null, not 0"
    assert str(Bounds(0.0, 1e9)) == "0 to 1000000000"


def test_defaults_are_not_shared() -> None:
    Numbers().widths.append(5)
    assert Numbers().widths == [1, 2]


GIB = 1 << 30
ROOT, POD, UNLIMITED_V1 = "", "kubepods/pod7", "9223372036854771712"
V2, V1 = "0::/{}\n", "4:memory:/{0}\n2:cpu,cpuacct:/{0}\n1:name=systemd:/\n0::/\n"


def quotas(names: str, group: str, text: str) -> dict[str, str]:
    """Return the files of a group with a CPU quota, in cgroup version 2 or 1."""
    if names == V2:
        return {f"{group}/cpu.max": text}
    quota, period = text.replace("max", "-1").split()
    return {f"cpu/{group}/cpu.cfs_quota_us": quota, f"cpu/{group}/cpu.cfs_period_us": period}


def memory(names: str, group: str, text: str) -> dict[str, str]:
    return {f"{group}/memory.max" if names == V2 else f"memory/{group}/memory.limit_in_bytes": text}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Fake a machine of 64 CPUs and its cgroup folder, without Slurm's groups."""
    for name in [each for each in os.environ if each.startswith("SLURM_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)), raising=False)
    monkeypatch.setattr(system, "_PROC", tmp_path / "proc")
    monkeypatch.setattr(system, "_CGROUPS", tmp_path / "cgroup")
    return tmp_path


def given(machine: Path, names: str, group: str, *files: dict[str, str]) -> None:
    (machine / "proc/self").mkdir(parents=True)
    (machine / "proc/self/cgroup").write_text(names.format(group))
    for name, text in [pair for each in files for pair in each.items()]:
        path = machine / "cgroup" / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


@pytest.mark.parametrize("names", [V2, V1], ids=["v2", "v1"])
@pytest.mark.parametrize(
    ("quota", "cpus"),
    {"400000 100000": 4, "150000 100000": 2, "50000 100000": 1, "max 100000": 64, "9900000 100000": 64}.items(),
)
def test_a_quota_counts_as_cpus(machine: Path, names: str, quota: str, cpus: int) -> None:
    """Rounded up, to use a fraction of a CPU. A container sees its group as the root."""
    given(machine, names, ROOT, quotas(names, ROOT, quota))
    assert system.usable_cpus() == system.cpus() == cpus


@pytest.mark.parametrize("names", [V2, V1], ids=["v2", "v1"])
def test_the_least_of_all_groups_above_counts(machine: Path, names: str) -> None:
    own, above = f"{POD}/me", (quotas(names, POD, "300000 100000"), memory(names, POD, str(GIB)))
    none = memory(names, own, "max" if names == V2 else UNLIMITED_V1)
    beside = quotas(names, f"{POD}/other", "100000 100000")
    given(machine, names, own, quotas(names, own, "800000 100000"), none, beside, *above)
    assert system.cpus() == 3 and system.memory() == GIB


def test_a_group_that_only_the_host_sees(machine: Path) -> None:
    """Docker with version 1: the path is the host's, the folders are the container's."""
    given(machine, V1, "docker/0123", quotas(V1, ROOT, "200000 100000"), memory(V1, ROOT, str(GIB)))
    assert system.cpus() == 2 and system.memory() == GIB


def usage(names: str, group: str, limit: str, used: int, files: int) -> dict[str, str]:
    """Return the files of a group with this memory usage, of which `files` is page cache."""
    folder, *those = (
        (group, "memory.max", "memory.current")
        if names == V2
        else (f"memory/{group}", "memory.limit_in_bytes", "memory.usage_in_bytes")
    )
    stat = f"anon {used - files}\nactive_file 4096\ninactive_file {files}\nslab 9\ntotal_inactive_file {2 * files}"
    texts = (limit, str(used), stat)
    return {f"{folder}/{name}": text for name, text in zip([*those, "memory.stat"], texts, strict=True)}


@pytest.mark.parametrize("names", [V2, V1], ids=["v2", "v1"])
def test_memory_that_is_available(machine: Path, names: str) -> None:
    """The least of the machine's and the groups' free memory; page cache counts as free."""
    none = usage(names, f"{POD}/me", "max" if names == V2 else UNLIMITED_V1, GIB, 0)
    given(machine, names, f"{POD}/me", none, usage(names, POD, str(4 * GIB), 3 * GIB, GIB // 2))
    assert system.available_memory() == 0, "nothing says how much the machine has"
    meminfo = machine / "proc/meminfo"
    meminfo.write_text(f"MemTotal:       {8 << 20} kB\nMemFree:        1 kB\nMemAvailable:   {7 << 20} kB\n")
    assert system.available_memory() == 3 * GIB // 2
    meminfo.write_text(f"MemTotal:       {8 << 20} kB\nMemAvailable:    {1 << 20} kB\n")
    assert system.available_memory() == GIB


def test_a_job_in_a_container_has_the_least(machine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given(machine, V2, ROOT, quotas(V2, ROOT, "400000 100000"))
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "8")
    assert system.cpus() == 4
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "2")
    assert system.cpus() == 2


def test_no_groups(machine: Path) -> None:
    """A kernel without cgroups, or a system other than Linux."""
    assert system.cpus() == 64 and system.memory() > 0
