"""The parts of a check: each is a command, a time limit, and the lines of its output that go into the report."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from command.child import child_command

ROOT = Path(__file__).parents[2]  # of the clone
RUN = "gpu_check"
# What `python -m tests.bench` is asked for, and the seconds it may take.
FIGURES = {
    "gpu_updates": 60,
    "ray_on_gpu": 120,
    "threads_on_gpu": 120,
    "device_on_gpu": 120,
    "device_random_play": 60,
}
TESTS = ("tests", "-m", "gpu")
# All kernels, by few updates: under the sanitizer each launch takes milliseconds.
_CAPTURED = ("tests/train/dqn/test_cuda_graphs.py", "tests/train/dqn/test_kernels.py")
SANITIZED = (*_CAPTURED, "-m", "gpu", "-k", "captured and equal")
SETTINGS: tuple[str, ...] = ()  # of doctor and the run: the defaults
# Errors that an API returns, as a capture that fails on purpose does, are none of a kernel.
_SANITIZER = ("compute-sanitizer", "--target-processes=all", "--report-api-errors=no", "--error-exitcode=9")
_PYTEST = ("-q", "-p", "no:cacheprovider")


@dataclass(frozen=True)
class Part:
    """A command, which has done nothing if no line of its output has the pattern `shows`: such lines are reported."""

    name: str
    command: Sequence[str]
    seconds: float  # after which it is ended, and has failed
    shows: str
    clone: bool = False  # whether it needs the tests, which are not in a wheel

    def missing(self) -> str:
        """What it needs and is not there; empty if all is."""
        if self.clone and not in_a_clone():
            return "needs the tests: run it in a clone of the repository"
        program = self.command[0]
        return "" if shutil.which(program) else f"{program} is not there: it comes with the CUDA toolkit"


def in_a_clone() -> bool:
    """Whether the tests are here."""
    return (ROOT / "tests" / "bench").is_dir()


def machine() -> list[str]:
    """The command that says what this machine is: one that speaks CUDA may keep others off the GPU while it runs."""
    return child_command("train.run.launches", [])


def all_parts(folder: Path, minutes: float) -> list[Part]:
    """The parts in their order. With a run of ten minutes they take about 25, and at most 40."""
    runs = f"runs={folder / 'runs'}"
    parts = [Part("tests", child_command("pytest", [*TESTS, *_PYTEST]), 400, r"\d+ passed", clone=True)]
    for name, seconds in FIGURES.items():
        parts.append(Part(name, child_command("tests.bench", [name]), seconds, r'^\{"figure"', clone=True))
    doctor = child_command("train", ["doctor", *SETTINGS, runs, f"name={RUN}"])
    parts.append(Part("doctor", doctor, 240, r"limited by|decisions/s, played|times as fast"))
    run = child_command("train", [*SETTINGS, runs, f"name={RUN}", f"minutes={minutes}"])
    parts.append(Part("run", run, 60 * minutes + 240, r"^games: |self-check"))
    sanitizer = [*_SANITIZER, sys.executable, "-m", "pytest", *SANITIZED, *_PYTEST]
    return [*parts, Part("sanitizer", sanitizer, 300, r"ERROR SUMMARY", clone=True)]
