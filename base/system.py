"""CPUs and memory that this process may use, and system calls that only Linux has, with a fallback for macOS.

Almost no imports: every command starts with it.
"""

import ctypes
import math
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_SET_PARENT_DEATH_SIGNAL, _SET_CHILD_SUBREAPER = 1, 36  # of prctl(2)
_LOOK_SECONDS = 0.5  # between two checks of the parent
# Parameters of mallopt(3) and their values; glibc before 2.35 accepts no threshold above 32 MiB.
_MALLOC = {-3: 32 << 20, -1: 1 << 30, -2: 64 << 20}  # M_MMAP_THRESHOLD, M_TRIM_THRESHOLD, M_TOP_PAD
MIB = 1 << 20
_SHARED_MEMORY = Path("/dev/shm")
_STORE_FRACTION, _MIN_STORE, _MAX_STORE = 0.15, 80 * MIB, 2048 * MIB


def usable_cpus() -> int:
    """Return the number of CPUs that this process may use, by affinity and container quota (1.5 counts as 2)."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    files = (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us"))
    quotas = [text.split() for text in cgroup_limits("cpu", *files)]
    return min([usable, *(max(1, math.ceil(int(used) / int(of))) for used, of in quotas if used.isdecimal())])


def available_memory() -> int:
    """Return the available memory in bytes, by the kernel and the control groups; 0 if unknown."""
    with suppress(OSError):
        found = re.search(r"MemAvailable: *(\d+)", (_PROC / "meminfo").read_text())
        return min([int(found[1]) * 1024 if found else 0, *_left_of_groups()])
    return 0


def _left_of_groups() -> Iterator[int]:
    """Yield the bytes left up to the limit of each control group; the file cache counts as free."""
    names_v1 = ("memory.limit_in_bytes", "memory.usage_in_bytes", "memory.stat")
    for text in cgroup_limits("memory", ("memory.max", "memory.current", "memory.stat"), names_v1):
        if found := re.match(r"(\d+) (\d+) .*?\binactive_file (\d+)", text, re.DOTALL):
            limit, used, files = map(int, found.groups())
            yield max(0, limit - used + files)


def cgroup_limits(controller: str, names_v2: Sequence[str], names_v1: Sequence[str]) -> Iterator[str]:
    """Yield the contents of these files for each control group of this process, joined by spaces.

    Includes all parent groups, whose limits also apply. A container sees its own group as the root.
    """
    with suppress(OSError):
        for line in (_PROC / "self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers and controller not in controllers.split(","):
                continue
            root, names = (_CGROUPS / controller, names_v1) if controllers else (_CGROUPS, names_v2)
            group = root / path.lstrip("/")
            for folder in (group, *group.parents):
                if folder.is_relative_to(root):
                    with suppress(OSError):
                        yield " ".join((folder / each).read_text().strip() for each in names)


def heard(numbers: Iterable[signal.Signals]) -> list[signal.Signals]:
    """Return the signals to handle: all but a SIGHUP that is ignored, as under `nohup`, and must stay so."""
    nohup = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return [number for number in numbers if not (nohup and number == signal.SIGHUP)]


def shared_file() -> int:
    """Return the descriptor of a new unnamed file, for memory that processes share."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("busso")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def keep_freed_memory() -> bool:
    """Make glibc keep up to 1 GiB of freed memory for later allocations; return True if it will.

    By default it returns the blocks of large tensors to the kernel, which zeroes each page at the next use. Does
    nothing with another C library, or where the environment configures malloc.
    """
    call = getattr(ctypes.CDLL(None), "mallopt", None)
    tuned = "glibc.malloc" in os.environ.get("GLIBC_TUNABLES", "")
    if call is None or tuned or any(name.startswith("MALLOC_") for name in os.environ):
        return False
    return all(call(parameter, value) for parameter, value in _MALLOC.items())


def end_with_parent(parent: int, number: int) -> bool:
    """Request the signal for when this process's parent ends; return False if `parent` has already ended.

    Linux takes the thread that started this process as the parent, so that thread must outlive it.
    """
    if not _prctl(_SET_PARENT_DEATH_SIGNAL, number):
        _watch(parent, number)
    return os.getppid() == parent


@cache  # one thread for any number of calls
def _watch(parent: int, number: int) -> None:
    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os.kill(os.getpid(), number)

    threading.Thread(target=look, name="parent", daemon=True).start()


def adopt_orphans() -> None:
    """Make this session leader the parent of orphaned descendants; where the kernel cannot, `parents` reports it so."""
    _prctl(_SET_CHILD_SUBREAPER, 1)


def parents() -> dict[int, int]:
    """Return the parent of each process, including zombies."""
    found: dict[int, int] = {}
    if not _PROC.is_dir():
        return _parents_by_ps()
    for folder in _PROC.iterdir():
        if folder.name.isdecimal():
            with suppress(OSError):
                # pid (name) state parent ..., and the name may contain anything
                found[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    return found


def _parents_by_ps() -> dict[int, int]:
    """Return the parents by `ps`; an orphan, adopted from outside its session, counts as its session leader's child."""
    with subprocess.Popen(["ps", "-A", "-o", "pid=", "-o", "ppid="], stdout=subprocess.PIPE, text=True) as ps:
        pairs = [[int(word) for word in line.split()] for line in ps.communicate()[0].splitlines()]
    found = {pid: parent for pid, parent in pairs if pid != ps.pid}
    sessions: dict[int, int] = {}
    for pid in found:
        with suppress(OSError):
            sessions[pid] = os.getsid(pid)
    orphans = {pid: leader for pid, leader in sessions.items() if leader not in (pid, sessions.get(found[pid]))}
    return found | orphans


def _prctl(option: int, value: int) -> bool:
    """Call prctl(2); return whether the system has it. Raises OSError."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)
    if call is not None and call(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    return call is not None


def cpus() -> int:
    """Return the number of CPUs that this process may use, in a Slurm job at most its CPUs on this node."""
    usable = usable_cpus()
    allocated = _number("SLURM_CPUS_ON_NODE") or _number("SLURM_CPUS_PER_TASK")
    return min(usable, allocated) if allocated else usable


def wait_passively() -> None:
    """Make PyTorch's threads sleep while they wait for one another, unless the environment is set otherwise.

    To be called before PyTorch is imported. By default they spin, on CPUs that rollout workers could use.
    """
    for name, value in (("OMP_WAIT_POLICY", "PASSIVE"), ("KMP_BLOCKTIME", "0")):
        os.environ.setdefault(name, value)


def memory() -> int:
    """Return the bytes of memory: the minimum for the machine, the container, and the Slurm job on this node."""
    limits = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    of_groups = cgroup_limits("memory", ["memory.max"], ["memory.limit_in_bytes"])
    limits += [int(text) for text in of_groups if text.isdecimal()]
    job = _number("SLURM_MEM_PER_NODE") or _number("SLURM_MEM_PER_CPU") * cpus()
    job = job or _number("SLURM_MEM_PER_GPU") * _number("SLURM_GPUS_ON_NODE")
    return min([*limits, job * MIB]) if job else min(limits)


def object_store() -> int:
    """Return the bytes for Ray's object store: a share of the memory that fits into /dev/shm, not to use the disk."""
    wanted = min(int(_STORE_FRACTION * memory()), _MAX_STORE)
    free = int(0.9 * shutil.disk_usage(_SHARED_MEMORY).free) if _SHARED_MEMORY.is_dir() else wanted
    return max(_MIN_STORE, min(wanted, free))


def _number(name: str) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else 0
