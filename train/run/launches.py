"""Machine and program of each start of a run: starts.json in its folder, for reports."""

import json
import logging
import platform
import subprocess
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import torch

from busso.base import system
from busso.base.files import write_atomic
from busso.command.settings.untrusted import read_json
from busso.train.run import checkpoint
from busso.train.run.checkpoint import with_retries
from busso.version import __version__

log = logging.getLogger("train")

FILE = "starts.json"
LEARNER_ON = "learner on "  # prefix of a learner's description; followed by CPU, or the name of a GPU
_CPUINFO = Path("/proc/cpuinfo")
_GIT_SECONDS = 5.0
_KEPT = 200  # runs on a cluster may start often


def add_launch(folder: Path, learner: str, run: str) -> None:
    """Record this start of the run with this id, with a description of its `learner`.

    Starts of another run, which left no checkpoint, are dropped, as are the rows of its curves. A damaged file is
    replaced and an unreadable one left alone: no run fails because of a file that only reports read.
    """
    try:
        before = with_retries(partial(_read, folder / FILE))
    except OSError as error:
        log.warning("%s: cannot be read (%s); this start is not recorded", folder / FILE, error.strerror or error)
        return
    start = {"time": datetime.now().astimezone().isoformat(timespec="seconds"), "learner": learner, **this_program()}
    start |= {"machine": this_hardware(), "run": run}
    found = [*(each for each in before if each.get("run") == run), start][-_KEPT:]
    write_atomic(folder / FILE, json.dumps(found, indent=2) + "\n")


def read_launches(folder: Path) -> list[dict[str, Any]]:
    """Return the starts of a run, oldest first; empty if the file is missing or damaged."""
    try:
        return _read(folder / FILE)
    except OSError:
        return []


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        found = read_json(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return []
    return [start for start in found if isinstance(start, dict)] if isinstance(found, list) else []


def began_on_gpu(folder: Path) -> bool:
    """Return whether the run in the folder has checkpoints and was ever on a GPU."""
    learners = [str(start.get("learner", "")) for start in read_launches(folder)]
    on_gpu = any(each.startswith(LEARNER_ON) and not each.startswith(f"{LEARNER_ON}CPU") for each in learners)
    return on_gpu and bool(checkpoints_of(folder))


def checkpoints_of(folder: Path) -> list[Path]:
    """List the checkpoints of a run folder, newest first; empty if the folder cannot be listed."""
    try:
        return with_retries(partial(checkpoint.listed, folder / "checkpoints"))
    except OSError:
        return []


def this_program() -> dict[str, Any]:
    """Return the versions, and of a clone the commit; `changed` if its files differ from it. Unknown ones are None."""
    found = {"version": __version__, "python": platform.python_version(), "torch": torch.__version__}
    own = commit()
    changes = own and _git("status", "--porcelain", "--untracked-files=no")
    return found | {"commit": own, "changed": None if changes is None else bool(changes)}


def this_hardware() -> dict[str, Any]:
    """Return the CPUs and bytes of memory that this process may use, and its GPUs."""
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    gpus = [torch.cuda.get_device_name(k) for k in range(count)]
    return {"cpu": _cpu(), "cpus": system.cpus(), "memory": system.memory(), "gpus": gpus}


def commit() -> str | None:
    """Return the program's commit; None outside a clone, also if installed inside another project's clone."""
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return None
    return _git("rev-parse", "HEAD") or None


def _git(*arguments: str) -> str | None:
    """Return git's output in the program's folder; None if git fails, as outside a clone."""
    # Git refuses another owner's clone, whose code this process runs all the same.
    command = ["git", "-c", "safe.directory=*", "-C", str(Path(__file__).parent), *arguments]
    try:
        found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=_GIT_SECONDS)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip()


def _cpu() -> str:
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
