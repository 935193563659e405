"""Real Slurm with a few nodes on this machine, and a checkout to submit jobs from."""

import csv
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests import limits, processes

ROOT = Path(__file__).parent.parent.parent
LAB = Path(__file__).parent / "lab"
# Preempted jobs are requeued here.
UNFINISHED = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED", "PREEMPTED")
PROGRAMS = ("slurmctld", "slurmd", "sbatch", "munged", "ip")


def why_not() -> str | None:
    """Return the reason why such a cluster is not available, or None."""
    if os.geteuid() != 0:
        return "a Slurm of our own needs root"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if shutil.which(program, path=path) is None]
    if missing:
        return f"no {', '.join(missing)}: apt-get install slurmctld slurmd slurm-client munge iproute2"
    if subprocess.run(["unshare", "--net", "--mount", "true"], check=False, capture_output=True).returncode:
        return "this machine does not let root make namespaces"
    return None


def checkout(folder: Path) -> Path:
    """Create a user's folder on the login node as after `make install`: code, slurm/ with its log folder, .venv."""
    folder.mkdir()
    for path in ROOT.iterdir():
        if path.name not in ("slurm", "runs", "tournaments") and not path.name.startswith("."):
            (folder / path.name).symlink_to(path)
    shutil.copytree(ROOT / "slurm", folder / "slurm", ignore=shutil.ignore_patterns("*.out", "*.log", "site.env"))
    (folder / ".venv").symlink_to(sys.prefix)
    return folder


@dataclass
class Job:
    """Fields of `scontrol show job`, by key."""

    fields: dict[str, str]

    @property
    def state(self) -> str:
        return self.fields["JobState"]

    @property
    def restarts(self) -> int:
        return int(self.fields["Restarts"])


class Cluster:
    """The running lab. Jobs are named by id, array tasks by ARRAY_TASK."""

    def __init__(self, state: Path, home: Path) -> None:
        self.state, self.home, self._restarts = state, home, dict[str, int]()
        self._env = {**os.environ, "SLURM_LAB": str(state), "SLURM_LAB_CPUS": "16", "SLURM_LAB_MEM": "64000"}
        cache = Path(os.environ.get("BUSSO_CACHE", "/"))  # jobs share the cache of compiled code with all tests
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        shared = [path for path in (home.parent, ROOT, Path(sys.prefix), cache) if path.is_relative_to("/tmp")]
        self._shared = {f"/tmp/{path.parts[2]}" for path in shared}
        self._env["SLURM_LAB_SHARED"] = ":".join(map(str, shared))
        for name in [name for name in self._env if name.startswith(("BUSSO_", "RAY_", "SBATCH_"))]:
            if name != "BUSSO_CACHE":
                del self._env[name]

    def lab(self, *command: str) -> str:
        """Run one of the lab's scripts."""
        before = processes.children()
        text = self._checked([str(LAB / command[0]), *command[1:]], ROOT)
        processes.keep_for_the_session(processes.children() - before)  # a restarted host belongs to the cluster
        return text

    def run(self, *command: str, node: str = "login") -> str:
        """Run a command on a host and return its standard output."""
        return self._checked([str(LAB / "run-in"), "-n", node, *command], self.home)

    def _checked(self, command: list[str], folder: Path) -> str:
        found = subprocess.run(command, cwd=folder, env=self._env, check=False, capture_output=True, text=True)
        assert found.returncode == 0, f"{' '.join(command)}: {found.returncode} {found.stdout} {found.stderr}"
        return found.stdout.strip()

    @property
    def version(self) -> tuple[int, int]:
        """Version of Slurm, such as (22, 5)."""
        found = re.search(r"(\d+)\.(\d+)", self.run("sbatch", "--version"))
        assert found
        return int(found[1]), int(found[2])

    def sbatch(self, *arguments: str) -> str:
        """Submit a job and return its id."""
        return self.run("sbatch", "--parsable", *arguments)

    def job(self, number: str) -> Job:
        """Return the state of a job or array task."""
        (line, *_) = self.run("scontrol", "show", "job", number, "-o").splitlines()
        return Job(dict(re.findall(r"(\w+)=(\S*)", line)))

    def until(self, what: str, seen: Callable[[], bool], seconds: float, number: str | None = None) -> float:
        """Wait until `seen` and return the seconds taken; fail with the job's log two seconds after its end."""
        start, ended = time.monotonic(), 0
        while not seen():
            over = number is not None and self.job(number).state not in UNFINISHED
            ended = ended + 1 if over else 0  # in a row: a preempted job looks ended before it is pending
            if ended > 10 or time.monotonic() - start > limits.seconds(seconds):
                waited = f"{time.monotonic() - start:.0f} s"
                raise AssertionError(f"not within {waited}: {what}\n{self.log(number) if number else ''}")
            time.sleep(0.2)
        return time.monotonic() - start

    def ended(self, number: str, state: str, seconds: float) -> Job:
        """Wait until the job has ended, and check its state."""
        self.until("the end", lambda: self.job(number).state not in UNFINISHED, seconds, number)
        job = self.job(number)
        assert job.state == state, f"{job.state} {job.fields.get('ExitCode')}\n{self.log(number)}"
        return job

    def log(self, number: str) -> str:
        """Return the output of the job."""
        return "\n".join(path.read_text() for path in sorted(self.home.glob(f"slurm/logs/*-{number}.out")))

    def usr1(self, number: str) -> None:
        """Send USR1 to the batch shell, as Slurm does shortly before the time limit."""
        self.run("scancel", "--batch", "--signal=USR1", number)

    def start_now(self, number: str) -> None:
        """Start a requeued job, which would else wait two minutes; after a node failure it may have started."""
        known = self._restarts.get(number, 0)

        def requeued() -> bool:
            job = self.job(number)
            return job.restarts > known and job.state in ("PENDING", "RUNNING")

        self.until("back in the queue", requeued, 60)
        time.sleep(1.5)  # nodes reject a job that starts within the second of its end: "already killed"
        started = f"scontrol show job {number} -o | grep -q JobState=RUNNING"
        self.run("bash", "-c", f"scontrol update jobid={number} StartTime=now || {started}")
        self._restarts[number] = self.job(number).restarts

    def kill_host(self, name: str) -> None:
        """Kill the first process of a host, and thereby all of them: like a machine failure."""
        pid = int((self.state / "run" / f"host.{name}").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)

    def left_behind(self, node: str) -> list[str]:
        """Return processes of jobs on a node, and files that jobs left in its /tmp and /dev/shm."""
        processes = self.run("ps", "-e", "-o", "args=", node=node).splitlines()
        lab = ("first-process", "slurmd -D", "ps -e", "<defunct>")
        found = [line for line in processes if not any(name in line for name in lab)]
        files = self.run("find", "/tmp", "/dev/shm", "-mindepth", "1", "-maxdepth", "1", node=node).splitlines()
        return found + [file for file in files if file not in self._shared]


def column(run: Path, name: str) -> list[int]:
    """Return a counter of metrics.csv as written so far."""
    try:
        with (run / "metrics.csv").open(newline="") as file:
            return [int(float(row[name])) for row in csv.DictReader(file) if row[name]]
    except (FileNotFoundError, KeyError, TypeError, ValueError):
        return []
