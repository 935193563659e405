"""Samples of processes and folders in a soak, as CSV: seconds, owner, measure, value."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from busso.train.rollout.ray.supervisor import descendants

EVENT = "event"  # measure of a line that records an event
_MONITOR = "log monitor"
# Names of processes, by a part of their command line.
_ROLES = {
    "ray::WorkerActor": "worker",
    "ray::EvaluatorActor": "evaluator",
    "ray::": "other worker",
    "raylet/raylet": "raylet",
    "gcs_server": "gcs_server",
    "busso.train.rollout.ray.supervisor": "supervisor",
    "log_monitor.py": _MONITOR,
    "ray/": "of Ray",
}
Series = tuple[list[float], list[float]]


class Samples:
    """Writer of samples, each line flushed at once. Use as a context manager."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("w", newline="", buffering=1)
        self._rows = csv.writer(self._file)
        self._rows.writerow(("seconds", "owner", "measure", "value"))

    def __enter__(self) -> Samples:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, seconds: float, owner: str, measures: Mapping[str, float]) -> None:
        """Add measurements of a process or folder, or an event of the run."""
        for measure, value in measures.items():
            self._rows.writerow((f"{seconds:.1f}", owner, measure, f"{value:.0f}"))


def read(path: Path) -> tuple[dict[tuple[str, str], Series], list[tuple[float, str]]]:
    """Read the series by owner and measure, and the events."""
    series: dict[tuple[str, str], Series] = {}
    events = []
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["measure"] == EVENT:
                events.append((float(row["seconds"]), row["owner"]))
                continue
            seconds, values = series.setdefault((row["owner"], row["measure"]), ([], []))
            seconds.append(float(row["seconds"]))
            values.append(float(row["value"]))
    return series, events


def of_processes(trainer: int) -> dict[str, dict[str, float]]:
    """Return the measures of a trainer and its live descendants, by role and process id."""
    found = {}
    for pid in (trainer, *descendants(trainer)):
        with suppress(OSError, ValueError, KeyError):
            role = "trainer" if pid == trainer else _role(pid)
            measures = _of_process(Path("/proc") / str(pid))
            if role == _MONITOR:  # not judged: it opens the log of every worker so far, up to 200
                measures["descriptors of Ray"] = measures.pop("descriptors")
            found[f"{role} {pid}"] = measures
    return found


def workers(trainer: int) -> list[int]:
    """Return the Ray processes that play and evaluate."""
    found = []
    for pid in descendants(trainer):
        with suppress(OSError):
            if _role(pid) in ("worker", "evaluator"):
                found.append(pid)
    return found


def of_folder(folder: Path) -> dict[str, float]:
    """Return the number of files below a folder, and their bytes on disk."""
    files = bytes_ = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with suppress(OSError):
                files, bytes_ = files + 1, bytes_ + (Path(parent) / name).lstat().st_blocks * 512
    return {"files": files, "bytes": bytes_}


def _role(pid: int) -> str:
    line = (Path("/proc") / str(pid) / "cmdline").read_text().replace("\0", " ")
    return next((role for text, role in _ROLES.items() if text in line), "other")


def _of_process(process: Path) -> dict[str, float]:
    """Return a process's measures; `memory` excludes mapped files, whose share depends on other processes."""
    sizes = dict(line.split(":", 1) for line in (process / "smaps_rollup").read_text().splitlines()[1:])
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    bytes_ = {name: 1024.0 * int(size.split()[0]) for name, size in sizes.items()}
    return {
        "memory": bytes_["Pss_Anon"] + bytes_["Pss_Shmem"],
        "pss": bytes_["Pss"],
        "rss": bytes_["Rss"],
        "descriptors": len(list((process / "fd").iterdir())),
        "threads": int(status["Threads"]),
    }
