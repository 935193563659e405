"""The three sides of `time_to_strength`: processes whose evaluations are timed from outside as they appear."""

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from busso.train.run.curves import evaluation_scalar
from tests.bench.strength.curves import Curve, Point
from tests.bench.strength.peers import DEALS, EVALUATIONS, OPPONENTS, SEED

LOOK_SECONDS = 0.25  # between two looks at what a side has written
GRACE_SECONDS = 120.0  # for the start of a side, and for its end
# As in docs/explanation/performance.md.
SETTINGS = {
    "dqn": "--opponents greedy --lr 1e-3 --batch-size 256 --capacity 100000 --fraction 0.1",
    "ppo": "--opponents greedy --lr 3e-4 --n-steps 120 --ent-coef 0.01 --n-epochs 4",
}
NAMES = {"busso": "busso train", "dqn": "single-file DQN", "ppo": "MaskablePPO"}

Row = dict[str, Any]  # hands won against each opponent, and "evaluating" if known


@dataclass(frozen=True)
class Side:
    """A command, and the reader of its evaluations so far."""

    name: str
    command: list[str]
    read: Callable[[], list[Row]]
    threads: int | None = None  # for PyTorch and its libraries; None leaves the default


def busso(folder: Path, minutes: float) -> Side:
    """Return `busso train` with default settings but more evaluations, against the two opponents only."""
    look = 60 * minutes / EVALUATIONS
    often = [f"evaluation.opponents=[{','.join(OPPONENTS)}]", f"evaluation.deals={DEALS}"]
    often += ["evaluation.every_episodes=500", f"evaluation.min_seconds={look:g}", f"evaluation.max_seconds={look:g}"]
    words = [f"minutes={minutes:g}", f"seed={SEED}", *often]
    command = [sys.executable, "-m", "busso.train", f"runs={folder}", "name=strength", *words]
    return Side(NAMES["busso"], command, lambda: of_metrics(folder / "tressette" / "strength" / "metrics.csv"))


def peer(name: str, folder: Path, minutes: float) -> Side:
    """Return a peer with one thread, for `minutes` of CPU time."""
    file = folder / f"{name}.jsonl"
    command = [sys.executable, "-m", "tests.bench.strength.peers", name, str(file), f"--seconds={60 * minutes:g}"]
    return Side(NAMES[name], [*command, *SETTINGS[name].split()], lambda: of_lines(file), threads=1)


def of_metrics(file: Path) -> list[Row]:
    """Read the evaluations in a metrics.csv."""
    columns = {opponent: evaluation_scalar("win_rate", opponent) for opponent in OPPONENTS}
    return [
        {opponent: float(row[column]) for opponent, column in columns.items()}
        for row in csv.DictReader(_whole_lines(file))
        if all(row.get(column) for column in columns.values())
    ]


def of_lines(file: Path) -> list[Row]:
    """Read the evaluations in a file of JSON lines."""
    return [json.loads(line) for line in _whole_lines(file)]


def _whole_lines(file: Path) -> Iterator[str]:
    """Yield the complete lines of a file; none before it exists."""
    with suppress(FileNotFoundError):
        yield from (line for line in file.read_text().splitlines(keepends=True) if line.endswith("\n"))


class Watched:
    """A running side, from start to end."""

    def __init__(self, side: Side, folder: Path) -> None:
        self._side, self._points, self._cpu = side, list[Point](), 0.0
        self._folder = folder
        self._evaluating: float | None = None
        threads = {} if side.threads is None else {"OMP_NUM_THREADS": str(side.threads)}
        self._log = (folder / f"{side.name.replace(' ', '_')}.log").open("wb")
        self._started = time.perf_counter()
        self.process = subprocess.Popen(side.command, stdout=self._log, stderr=self._log, env=os.environ | threads)

    def look(self) -> bool:
        """Record new evaluations, and return whether the side is still running."""
        running = self.process.poll() is None
        rows = self._side.read()
        new = rows[len(self._points) :]
        if new:
            self._cpu = max(self._cpu, cpu_seconds(self.process.pid))
            wall = time.perf_counter() - self._started
            won = [{opponent: round(row[opponent], 4) for opponent in OPPONENTS} for row in new]
            self._points += [Point(round(self._cpu, 2), round(wall, 2), each) for each in won]
            self._evaluating = new[-1].get("evaluating")
        return running

    def curve(self) -> Curve:
        """Return the learning curve. Raises RuntimeError, with the tail of the log, if there are no evaluations."""
        self._log.close()
        name, code = self._side.name, self.process.returncode
        if code or not self._points:
            end = Path(self._log.name).read_text(errors="replace")[-2000:]
            raise RuntimeError(f"{name}: exit code {code}, {len(self._points)} evaluations\n{end}")
        command = " ".join(["python", *self._side.command[1:]]).replace(str(self._folder), "FOLDER")
        last = self._points[-1]
        return Curve(name, command, self._points, last.cpu, last.wall, self._evaluating)


def cpu_seconds(pid: int) -> float:
    """Return CPU seconds used so far by a process and its descendants, including ended ones."""
    total = 0.0
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                times = each.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
    return total


def run(sides: Sequence[Side], folder: Path, limit: float) -> list[Curve]:
    """Run sides in parallel. Raises TimeoutError after twice `limit` seconds (for other load) and a grace time."""
    watched = [Watched(side, folder) for side in sides]
    most = 2 * limit + GRACE_SECONDS
    end = time.perf_counter() + most
    try:
        while True:
            running = [each.look() for each in watched]  # no short-circuit: every side must be read
            if not any(running):
                break
            if time.perf_counter() > end:
                raise TimeoutError(f"not done after {most:g} s: {', '.join(side.name for side in sides)}")
            time.sleep(LOOK_SECONDS)
    finally:
        for each in watched:
            if each.process.poll() is None:
                each.process.terminate()
                each.process.wait()
    return [each.curve() for each in watched]
