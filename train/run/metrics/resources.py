"""CPUs and memory that this process may use on a shared machine."""

import os
import shutil
from pathlib import Path

from busso.command import system

MIB = 1 << 20
_SHARED_MEMORY = Path("/dev/shm")
_STORE_FRACTION, _MIN_STORE, _MAX_STORE = 0.15, 80 * MIB, 2048 * MIB


def cpus() -> int:
    """Return the number of CPUs that this process may use, in a Slurm job at most its CPUs on this node."""
    usable = system.cpus()
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
    of_groups = system.cgroup_limits("memory", ["memory.max"], ["memory.limit_in_bytes"])
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
