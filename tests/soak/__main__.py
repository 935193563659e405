"""`python -m tests.soak [--minutes M] [--to FOLDER]`: a run with Ray, killed repeatedly and monitored.

In the first half of the time, the trainer is killed (`kill -9`) or stopped (SIGTERM) at random and restarted; in the
second half one trainer lives to the end. Random Ray workers are killed throughout, and checkpoints are written every
ten seconds. The soak fails if a start does not resume from its checkpoint, if a process is left behind, or if memory,
descriptors, threads, processes or files grow by more than `judging.TOLERANCES` in the second half of a life.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from busso.train.rollout.ray.supervisor import descendants
from tests.limits import until
from tests.soak import samples
from tests.soak.judging import faults
from tests.soak.samples import Samples
from tests.train.processes import alive

EVERY = 3.0  # seconds between samples
TRAINER_LIVES = (60.0, 240.0)  # seconds, in the first half
WORKER_LIVES = (20.0, 120.0)  # seconds between two kills of workers
START_SECONDS = 300.0  # for the first update after a start, on a loaded machine
END_SECONDS = 120.0
REQUEUE = 75  # exit code of a trainer that lost Ray; the same command resumes
SETTINGS = (
    "rollout=ray",
    "rollout.workers=2",
    "rollout.games=64",
    "network.hidden=[64,64]",
    "learner.learning_starts=2000",
    "learner.batch_size=128",
    "replay.capacity=100000",
    "log_every_episodes=1",
    "evaluation.every_episodes=1",
    "evaluation.deals=64",
    "evaluation.opponents=[random,greedy]",
    "checkpoint.every_episodes=1",
    "checkpoint.min_seconds=10",
    "checkpoint.max_seconds=10",
    "name=soak",
)


@dataclass
class Soak:
    """A soak into a folder; faults are collected in `problems`."""

    to: Path
    seconds: float
    temporary: Path
    choose: random.Random
    record: Samples
    problems: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    started: float = 0.0  # latest start, in seconds since the soak began
    logged: int = 0  # length of train.log at that time

    @property
    def run(self) -> Path:
        """Folder of the run."""
        return self.to / "runs" / "tressette" / "soak"

    def now(self) -> float:
        """Return the seconds since the soak began."""
        return time.monotonic() - self.began

    def live(self) -> None:
        """Restart until the time is over or a problem occurs."""
        while self.now() < self.seconds and not self.problems:
            lasts = self.choose.uniform(*TRAINER_LIVES)
            last = self.now() + lasts > self.seconds / 2
            self._one_life(self.seconds if last else self.now() + lasts, last)
            left = {f"{measure} left": value for measure, value in samples.of_folder(self.temporary).items()}
            self.record.add(self.now(), "temporary folder", left)

    def _one_life(self, until_seconds: float, last: bool) -> None:
        resumes = bool(self._checkpoints())
        process = self._start()
        try:
            says = "resumed from" if resumes else "first update"
            self._watch(process, START_SECONDS + self.now(), lambda: self._says(says))
            if process.poll() is None and not self._says(says):
                self.problems.append(f"no update within {START_SECONDS:.0f} s")
            begins = self._checkpoints()
            self._watch(process, max(until_seconds, self.now() + 30), lambda: False)
            if process.poll() not in (None, REQUEUE):
                self.problems.append(f"the trainer ended with {process.poll()}: {self._stderr()[-500:]}")
            elif self.now() - self.started > 60 and self._checkpoints() == begins:
                self.problems.append("no new checkpoint within a minute")
        finally:
            self._end(process, signal.SIGTERM if last or self.choose.random() < 0.3 else signal.SIGKILL)

    def _start(self) -> subprocess.Popen[bytes]:
        self.started, self.logged = self.now(), len(self._log())
        more = [f"minutes={100 * self.seconds / 60}", f"runs={self.to / 'runs'}"]
        with (self.to / "stderr").open("wb") as errors:
            return subprocess.Popen(
                [sys.executable, "-m", "busso.train", *SETTINGS, *more],
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=os.environ | {"TMPDIR": str(self.temporary)},
            )

    def _watch(self, process: subprocess.Popen[bytes], end: float, seen: Callable[[], bool]) -> None:
        """Sample, and kill workers now and then, until `end`, until `seen`, or until the trainer has ended."""
        kill = self.now() + self.choose.uniform(*WORKER_LIVES)
        while process.poll() is None and self.now() < end and not seen():
            self._sample(process.pid)
            if self.now() > kill and (there := samples.workers(process.pid)):
                with suppress(ProcessLookupError):
                    os.kill(self.choose.choice(there), signal.SIGKILL)
                self.record.add(self.now(), "kill -9 of a worker", {samples.EVENT: 1})
                kill = self.now() + self.choose.uniform(*WORKER_LIVES)
            time.sleep(EVERY)

    def _sample(self, trainer: int) -> None:
        at, found = self.now(), samples.of_processes(trainer)
        for owner, measures in found.items():
            self.record.add(at, owner, measures)
        summed = ("memory", "descriptors", "threads")
        everybody = {name: sum(each.get(name, 0) for each in found.values()) for name in summed}
        self.record.add(at, f"all of trainer {trainer}", everybody | {"processes": len(found)})
        self.record.add(at, f"run folder of trainer {trainer}", samples.of_folder(self.run))
        there = samples.of_folder(self.temporary)
        # Not judged: Ray keeps the log of every worker, and workers are killed all the time.
        there["files of Ray"] = there.pop("files")
        self.record.add(at, f"temporary folder of trainer {trainer}", there)

    def _end(self, process: subprocess.Popen[bytes], number: signal.Signals) -> None:
        """End a trainer, and check that no process is left."""
        below = descendants(process.pid)
        self.record.add(self.now(), f"{number.name} of the trainer", {samples.EVENT: 1})
        with suppress(ProcessLookupError):
            process.send_signal(number)
        try:
            process.wait(END_SECONDS)
            until("all it started has ended", lambda: not alive(below), END_SECONDS)
        except (subprocess.TimeoutExpired, AssertionError):
            self.problems.append(f"{len(alive(below))} processes were left after {number.name}")
            for pid in (process.pid, *below):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        if process.wait() not in (-number, 128 + number, REQUEUE):
            self.problems.append(f"{number.name} ended the trainer with {process.returncode}: {self._stderr()[-500:]}")

    def _checkpoints(self) -> list[str]:
        return sorted(path.name for path in (self.run / "checkpoints").glob("episode_*.pt"))

    def _stderr(self) -> str:
        return (self.to / "stderr").read_text(errors="replace")

    def _log(self) -> str:
        log = self.run / "train.log"
        return log.read_text(errors="replace") if log.exists() else ""

    def _says(self, text: str) -> bool:
        return text in self._log()[self.logged :]


def judged(to: Path, problems: Sequence[str] = ()) -> int:
    """Print the growth in a soak's samples and return the exit code."""
    series, events = samples.read(to / "samples.csv")
    lines = [*problems, *faults(series)]
    lives = len({owner for owner, _ in series if owner.startswith("trainer ")})
    print(f"{lives} lives of a trainer, {len(events)} kills and stops; {to / 'samples.csv'} has all that was sampled")
    for line in lines:
        print(f"FAILED: {line}")
    print("nothing grows" if not lines else f"{len(lines)} faults")
    return 1 if lines else 0


def main(arguments: Sequence[str]) -> int:
    """Run the command line and return the exit code."""
    parser = argparse.ArgumentParser("python -m tests.soak", description="A run that is killed and watched.")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long")
    parser.add_argument("--to", type=Path, default=Path("soak"), help="folder for the run and samples.csv")
    parser.add_argument("--seed", type=int, default=1, help="of what is killed when")
    parser.add_argument("--judge", type=Path, metavar="FOLDER", help="judge the samples of an earlier soak alone")
    options = parser.parse_args(arguments)
    if options.judge is not None:
        return judged(options.judge)
    shutil.rmtree(options.to, ignore_errors=True)
    options.to.mkdir(parents=True)
    with ExitStack() as stack:
        # Socket paths are limited to 107 characters, of which Ray needs 70.
        temporary = stack.enter_context(tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True))
        record = stack.enter_context(Samples(options.to / "samples.csv"))
        soak = Soak(options.to.resolve(), 60 * options.minutes, Path(temporary), random.Random(options.seed), record)
        soak.live()
        problems = soak.problems
    return judged(options.to, problems)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
