import subprocess
from collections.abc import Callable
from typing import Any

import pytest

# The real supervisor, after `code` in its process.
SUPERVISOR = """
import os, pathlib, subprocess, sys, time, types
from multiprocessing.connection import Connection
import busso.train.rollout.ray.supervisor
{code}
lifeline, channel, *slots = map(int, sys.argv[2:])
sys.exit(busso.train.rollout.ray.supervisor.main(pathlib.Path(sys.argv[1]), lifeline, channel, slots))
"""


@pytest.fixture
def supervisor_runs(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that sets the code to run in the next supervisors before they begin."""
    start = subprocess.Popen

    def runs(code: str) -> None:
        def popen(command: list[str], **options: Any) -> subprocess.Popen[bytes]:
            if command[1:3] == ["-m", "busso.train.rollout.ray.supervisor"]:
                command = [command[0], "-c", SUPERVISOR.format(code=code), *command[3:]]
            return start(command, **options)

        monkeypatch.setattr(subprocess, "Popen", popen)

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    return runs
