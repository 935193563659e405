"""Commands without Linux-only features, which `hide/sitecustomize.py` hides in each process, as on macOS."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from busso.train.rollout.ray.supervisor import descendants
from tests.field.other_system.hidden import HIDDEN
from tests.limits import seconds, until
from tests.train.processes import LIMIT, alive, named, trainer
from tests.train.runs import newest


def busso(folder: Path, *words: str, typed: str = "") -> str:
    """Run `busso` with these words successfully and return its output."""
    found = subprocess.run(
        [sys.executable, "-m", "busso.command.commands", *words],
        cwd=folder,
        env=os.environ | HIDDEN,
        input=typed,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds(100),
    )
    assert found.returncode == 0 and "Traceback" not in found.stderr, found.stderr
    return found.stdout


def test_it_is_hidden() -> None:
    """Otherwise the other tests would prove nothing."""
    sees = """
import ctypes, os, pathlib
assert not {"memfd_create", "pidfd_open", "sched_getaffinity"} & set(dir(os))
assert not hasattr(ctypes.CDLL(None), "prctl") and hasattr(ctypes.CDLL(None), "getpid")
assert not pathlib.Path("/proc").exists() and not pathlib.Path("/dev/shm").is_dir() and pathlib.Path("/").is_dir()
"""
    subprocess.run([sys.executable, "-c", sees], env=os.environ | HIDDEN, check=True)


@pytest.mark.slow
def test_a_training(tmp_path: Path) -> None:
    tiny = ["episodes=64", "rollout=local", "network.hidden=[8]", "evaluation.final_deals=16", "replay.capacity=1000"]
    assert "random" in busso(tmp_path, "train", "game=sette_mezzo", *tiny)


# Print that worker processes are stopped.
TWO = """
import os, sys
from busso.evaluate.tournament import batches
from busso.evaluate.tournament.__main__ import main

class Executor(batches.Executor):
    def close(self):
        print("closes", len(self.pool._processes), file=sys.stderr)
        super().close()

if __name__ == "__main__":
    batches.Executor = Executor
    sys.exit(main(sys.argv[1:]))
"""


def test_a_tournament_of_two_processes(tmp_path: Path) -> None:
    script = tmp_path / "two.py"
    script.write_text(TWO)
    words = ["game=sette_mezzo", "players=[random,hit_below_5]", "deals=2048", "processes=2", "folder=t"]
    command = [sys.executable, str(script), *words]
    options: Any = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": seconds(100)}
    found = subprocess.run(command, env=os.environ | HIDDEN, check=False, **options)
    assert found.returncode == 0 and "random" in found.stdout and "closes 2" in found.stderr, found.stderr


@pytest.mark.ray
@pytest.mark.slow
@pytest.mark.timeout(400)
def test_a_training_with_ray_leaves_no_process(tmp_path: Path) -> None:
    """The Ray driver is killed; Ray's own processes would end only seconds later."""
    with trainer(tmp_path, "rollout=ray", "rollout.workers=1", "rollout.games=32", **HIDDEN) as process:
        pids = descendants(process.pid)
        supervisor, driver = named(process.pid, "busso.train.rollout.ray.supervisor")
        assert len(pids) > 6
        os.kill(driver, signal.SIGKILL)
        until("the supervisor has ended", lambda: not alive([supervisor]), 30, every=0.01)
        assert not alive(pids)  # it ends them, including orphans, and waits
        process.wait(LIMIT)
        assert process.returncode == 75 and newest(tmp_path)["learner"]["updates"] > 0
