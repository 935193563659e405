"""Environment of Ray's processes, and the private folder of a run's own cluster, protected from other users.

No Ray here.

By default Ray listens on all interfaces, stores its token where others may read it, and leaves its sockets and logs in
a folder that everyone can open.
"""

import os
import re
import secrets
import shutil
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from busso.base.lock import read_owner, this_process

# Settings of every process of Ray in a run or a job, unless the user has set others.
_SETTINGS = {
    # By default Ray runs workers at nice 15: next to other busy processes, they get about a hundredth of a core and
    # take minutes to start. A job's CPUs are for the workers as much as for the learner.
    "RAY_worker_niceness": "0",
    # By default Ray remembers 100,000 tasks, about 300 MB after an hour; each rollout is a task.
    "RAY_task_events_max_num_task_in_gcs": "1000",
    # By default every process of Ray logs its statistics each minute, with 64 workers a gigabyte in two days.
    "RAY_event_stats": "0",
}
PREFIX, OWNER = "busso-", "owner"
_NAME = re.compile(rf"{PREFIX}[a-z0-9_]{{8}}")  # names made by `tempfile.mkdtemp`
EXIT_LOST = 3  # exit code of a driver that has already printed Ray's logs
_OF_A_SOCKET = 103 if sys.platform == "darwin" else 107  # maximum characters of a socket's path
_LONGEST = _OF_A_SOCKET - 68  # maximum characters of a folder: Ray appends the rest, including `/ray`
_REMOVE_SECONDS = 5.0
_LOGS = ("gcs_server.out", "gcs_server.err", "raylet.out", "raylet.err", "dashboard.log", "dashboard.err")
_LINES = 10  # lines printed of each log


def settings() -> dict[str, str]:
    """Return the variables of Ray that this process's environment lacks; slurm/lib/ray-node asks for them, too."""
    return {name: value for name, value in _SETTINGS.items() if name not in os.environ}


def environment(folder: Path) -> dict[str, str]:
    """Return the environment for the cluster's processes. Ray creates `ray` in the folder, accessible to all."""
    return {
        "RAY_TMPDIR": str(folder),
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN": secrets.token_hex(32),
        # Without multi-node clusters, Ray listens on 127.0.0.1 only: its default on macOS and Windows.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    }


def bases() -> list[Path]:
    """Return candidate parent folders, best first."""
    return [Path(name) for name in (os.environ.get("RAY_TMPDIR"), tempfile.gettempdir(), "/tmp") if name]


def make() -> Path:
    """Create a short private folder for Ray's sockets, and remove those of dead processes. Raises SettingsError."""
    from busso.command.settings.checks import SettingsError

    reasons = []
    longest = _LONGEST - len(PREFIX) - 9
    for base in bases():
        if len(os.fsencode(base)) > longest:
            reasons.append(f"{base} is longer than {longest} characters")
            continue
        sweep(base)
        try:
            base.mkdir(parents=True, exist_ok=True)
            folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
            claim(folder)
        except OSError as error:
            reasons.append(f"{base}: {error.strerror}")
        else:
            return folder
    problem = f"no place for Ray's sockets ({'; '.join(dict.fromkeys(reasons))})"
    raise SettingsError("TMPDIR", problem, "set it to a short path of a writable folder")


def claim(folder: Path) -> None:
    """Record this process as the owner of the folder."""
    (folder / OWNER).write_bytes(this_process().as_bytes(0))


def sweep(base: Path) -> None:
    """Remove folders in `base` left by dead processes of this user on this machine."""
    for folder in base.glob(f"{PREFIX}*"):
        if not _NAME.fullmatch(folder.name):
            continue
        with suppress(OSError):
            if folder.lstat().st_uid == os.getuid() and not folder.is_symlink():
                owner = read_owner((folder / OWNER).read_bytes())
                if owner is not None and owner.has_ended():
                    shutil.rmtree(folder, ignore_errors=True)


def remove(folder: Path) -> None:
    """Remove the folder, retrying while ending processes still write to it."""
    end = time.monotonic() + _REMOVE_SECONDS
    while folder.exists() and time.monotonic() < end:
        shutil.rmtree(folder, ignore_errors=True)
        time.sleep(0.02)


def print_ray_logs() -> None:
    """Print the last lines of Ray's server logs, which are deleted with the folder."""
    logs = Path(os.environ["RAY_TMPDIR"]) / "ray" / "session_latest" / "logs"
    for name in _LOGS:
        with suppress(OSError):
            lines = (logs / name).read_text(encoding="utf-8", errors="replace").splitlines()[-_LINES:]
            if lines:
                print(f"--- {name}", *lines, sep="\n", file=sys.stderr, flush=True)
