"""`busso doctor [key=value ...]`: report which resources a run would have here, and what limits it.

example:
  busso doctor game=spike
"""

import importlib.metadata
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import torch
from rich.table import Column, Table
from rich.text import Text

from busso.base import system
from busso.base.errors import UserError
from busso.command.settings.checks import SettingsError
from busso.train.doctor import measure as stages
from busso.train.doctor.memory import BUFFERS, buffer_bytes, check_gpu_memory, check_job_memory
from busso.train.run.device import choose_device, driver_version, problem_with
from busso.train.run.folder import RunFolder
from busso.train.run.launches import began_on_gpu
from busso.train.settings.dqn import TrainSettings

GIB = 1 << 30
WORKER_BYTES = 520 * system.MIB  # Ray worker with PyTorch and compiled games: `make bench`, worker_memory
RAY_BYTES = 450 * system.MIB  # Ray's own processes on a node, idle
_PACKAGES = ("torch", "ray", "numba", "numpy", "hydra-core")


@dataclass(frozen=True)
class Finding:
    """Line of the report: the check, its finding, and whether a run would fail because of it."""

    what: str
    says: str
    verdict: str = "ok"  # ok, warning, error


def examine(settings: TrainSettings) -> list[Finding]:
    """Return all findings except speeds. The run would start if none has the verdict "error"."""
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    program = Finding("versions", f"Python {platform.python_version()}, {versions}")
    findings = [program, *_gpus(settings), _cpus(settings), _memory(settings), _folder(settings)]
    return findings + (_ray(settings) if settings.rollout.kind == "ray" else [])


def _gpus(settings: TrainSettings) -> Iterator[Finding]:
    problem, driver = problem_with(), driver_version()
    for index in range(0 if problem else torch.cuda.device_count()):
        name, size = torch.cuda.get_device_name(index), torch.cuda.get_device_properties(index).total_memory
        yield Finding(f"cuda:{index}", f"{name}, {size / GIB:.0f} GiB, CUDA {torch.version.cuda}, driver {driver}")
    if problem and driver:  # a GPU may be present and should not stay unused unnoticed
        yield Finding("GPU", f"{problem.text}; {problem.hint}", "warning")
    elif problem:
        yield Finding("GPU", f"none: {problem.text}")
    try:
        device = choose_device(settings.device, began_on_gpu(settings.folder))
        if device.type == "cuda":
            check_gpu_memory(settings, torch.cuda.mem_get_info(device)[0], f"cuda:{device.index or 0}")
        yield Finding("device", f"the learner computes on {device} (device={settings.device})")
    except SettingsError as error:
        yield Finding("device", str(error), "error")


def _cpus(settings: TrainSettings) -> Finding:
    there, mine = os.cpu_count() or 0, system.cpus()
    says = f"{mine} of the machine's {there}"
    named, cluster = settings.rollout.workers, os.environ.get("RAY_ADDRESS")
    if settings.rollout.kind == "ray":
        says += f"; {stages.workers_here(settings)} rollout workers on this node"
        if cluster and not named:  # the cluster's CPUs set the number of workers
            says += "; only this node of the cluster at RAY_ADDRESS is counted; set rollout.workers=N"
    return Finding("CPUs", says, "warning" if (named or 0) > mine and not cluster else "ok")


def _replay_bytes(settings: TrainSettings) -> float:
    return settings.replay.capacity * buffer_bytes(settings)


def _memory(settings: TrainSettings) -> Finding:
    workers, limit = stages.workers_here(settings), system.memory()
    on_gpu = settings.device != "cpu" and problem_with() is None
    ray = RAY_BYTES + workers * WORKER_BYTES + system.object_store() if workers else 0
    try:
        check_job_memory(settings, limit, on_gpu)
    except SettingsError as error:
        return Finding("memory", str(error), "error")
    wanted = ray + GIB + _replay_bytes(settings) * BUFFERS
    says = f"{limit / GIB:.1f} GiB for this job, about {wanted / GIB:.1f} GiB needed"
    return Finding("memory", says, "ok" if wanted <= limit else "warning")


def _folder(settings: TrainSettings) -> Finding:
    folder = settings.folder
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x")
    except OSError as error:
        return Finding("run folder", f"{folder}: {error.strerror}; choose another with runs=...", "error")
    free = shutil.disk_usage(there).free
    wanted = (_replay_bytes(settings) + 64 * system.MIB) * (settings.checkpoint.keep + 1)
    try:
        newest = RunFolder(settings).newest()
    except UserError as error:
        return Finding("run folder", str(error), "error")
    start = f"resumes from {newest.name}" if newest else "starts from scratch"
    says = f"{folder} {start}; {free / GIB:.1f} GiB free, up to {wanted / GIB:.1f} GiB needed"
    return Finding("run folder", says, "ok" if wanted <= free else "warning")


def _ray(settings: TrainSettings) -> list[Finding]:
    from busso.train.rollout.ray.backend import nodes_of_cluster

    started = time.perf_counter()
    try:
        nodes = nodes_of_cluster(settings)
    except UserError as error:
        return [Finding("Ray", str(error), "error")]
    where = os.environ.get("RAY_ADDRESS", "own cluster")
    up = Finding("Ray", f"{where}, started in {time.perf_counter() - started:.1f} s")
    return [up, *(Finding("Ray node", node) for node in nodes)]


def as_dict(findings: list[Finding], measured: stages.Measured | None) -> dict[str, Any]:
    """Return what `screen` shows, for JSON."""
    found: dict[str, Any] = {"starts": all(each.verdict != "error" for each in findings)}
    found["findings"] = [asdict(each) for each in findings]
    if measured:
        found["stages"] = [each._asdict() | {"busy": measured.busy(each)} for each in measured.stages]
        found |= {"limited_by": measured.limit.name, "decisions": measured.decisions}
    return found


def screen(findings: list[Finding], measured: stages.Measured | None) -> Iterator[Table | str]:
    """Yield the findings as a table, then any measured stages and which one limits the run."""
    table = Table("", Column("found", overflow="fold"), "", title="what a run would use")
    colours = {"ok": "green", "warning": "yellow", "error": "red"}
    for finding in findings:
        table.add_row(finding.what, finding.says, Text(finding.verdict, colours[finding.verdict]))
    yield table
    if measured:
        yield from stages.screen(measured)
