"""CPU and memory limits of containers, pods and services count, not the machine's totals."""

import os
from pathlib import Path

import pytest

from busso.base import system

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
