"""Tests whether the locks of a file system keep two processes apart."""

from __future__ import annotations

import fcntl
import subprocess
import sys
import tempfile
from pathlib import Path

_CALLS = {"byte-range locks": "lockf", "flock": "flock"}  # by what people call them
_OTHER = """
import fcntl, sys
try:
    fcntl.{call}(open(sys.argv[1], "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    sys.exit(3)
"""
_SECONDS = 60.0
_MOUNTS = Path("/proc/self/mounts")
_TELLING = ("flock", "localflock", "noflock", "nolock", "local_lock=all", "local_lock=posix", "local_lock=flock")
_ON_ONE_NODE = ("localflock", "nolock", "local_lock=all", "local_lock=posix")


def try_locks(folder: Path) -> tuple[str, bool]:
    """What locks in the folder do between two processes of this machine, and whether its mount promises no less.

    Raises OSError when nothing can be written there.
    """
    found = {kind: _tried(folder, kind) for kind in _CALLS}
    kind, options = mount_of(folder)
    says = ", ".join(f"{kind}: {result}" for kind, result in found.items())
    fine = found["byte-range locks"] == "hold" and not any(option in _ON_ONE_NODE for option in options)
    return f"{says} (on {' '.join([kind, *options])})", fine


def mount_of(folder: Path) -> tuple[str, list[str]]:
    """The kind of the file system that has the folder, and those of its mount options that say something of locks."""
    there, found = folder.resolve(), ("an unknown file system", list[str]())
    try:
        lines = _MOUNTS.read_text().splitlines()
    except OSError:
        return found
    longest = -1
    for line in lines:
        _, point, kind, options, *_ = line.split()
        at = Path(point.replace("\\040", " "))
        if there.is_relative_to(at) and len(at.parts) >= longest:
            longest = len(at.parts)
            found = kind, [option for option in options.split(",") if option in _TELLING]
    return found


def _tried(folder: Path, kind: str) -> str:
    with tempfile.NamedTemporaryFile(dir=folder, prefix=".lock-") as file:
        try:
            getattr(fcntl, _CALLS[kind])(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return f"none ({error.strerror})"
        command = [sys.executable, "-I", "-S", "-c", _OTHER.format(call=_CALLS[kind]), file.name]
        try:
            code = subprocess.run(command, check=False, capture_output=True, timeout=_SECONDS).returncode
        except subprocess.TimeoutExpired:
            return "do not answer"
    return {0: "do not hold", 3: "hold"}.get(code, f"unknown (exit code {code})")
