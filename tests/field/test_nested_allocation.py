"""Jobs submitted from within another allocation, whose variables sbatch passes on; with a real Slurm: tests/slurm."""

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from submitit.core.utils import FailedJobError

from busso.train.__main__ import main
from tests.pages import ROOT

SCRIPTS = sorted(path.name for path in (ROOT / "slurm").glob("*.sh") if path.name != "sweep.sh")
# Set by Slurm for every job.
OWN = {
    "SLURM_JOB_ID": "9",
    "SLURM_JOB_NAME": "x",
    "SLURM_JOB_NUM_NODES": "1",
    "SLURM_JOB_NODELIST": "node1",
    "SLURM_JOB_CPUS_PER_NODE": "4",
    "SLURM_CPUS_ON_NODE": "4",
    "SLURM_GPUS_ON_NODE": "1",
    "SLURM_CONF": "/etc/slurm.conf",
    "SLURM_SCRATCH": "/scratch",  # set by a site's prolog
}
# Passed on by Slurm 22.05 to a job from a step of an array task.
FOREIGN = {
    "SLURM_ARRAY_JOB_ID": "6",
    "SLURM_ARRAY_TASK_COUNT": "8",
    "SLURM_ARRAY_TASK_ID": "3",
    "SLURM_CPU_BIND": "quiet,mask_cpu:0x1",
    "SLURM_CPUS_PER_TASK": "3",
    "SLURM_DISTRIBUTION": "cyclic",
    "SLURM_EXPORT_ENV": "NONE",
    "SLURM_GPUS": "2",
    "SLURM_GPUS_PER_NODE": "2",
    "SLURM_GPUS_PER_SOCKET": "1",
    "SLURM_GPUS_PER_TASK": "1",
    "SLURM_HINT": "nomultithread",
    "SLURM_JOB_ACCOUNT": "other",
    "SLURM_JOB_QOS": "other",
    "SLURM_MEM_PER_CPU": "300",
    "SLURM_MEM_PER_GPU": "300",
    "SLURM_MEM_PER_NODE": "300",
    "SLURM_NTASKS": "2",
    "SLURM_NTASKS_PER_NODE": "2",
    "SLURM_RESTART_COUNT": "7",
    "SLURM_STEP_GPUS": "0",
    "SLURM_STEP_ID": "0",
    "SLURM_SUBMIT_HOST": "node2",
}
# From the user's shell; with these, srun would hide a node's log.
OF_SRUN = {"SRUN_ERROR": "/dev/null", "SRUN_INPUT": "none", "SRUN_OUTPUT": "/dev/null"}
PLAIN = "Account=(null) QOS=(null) Restarts=0 MinMemoryNode=0"  # format of `scontrol show job`
ARRAY = {name for name in FOREIGN if "ARRAY" in name}
# Variables that a job may legitimately have; its record shows them.
TOLD = ARRAY | {f"SLURM_{name}" for name in ("RESTART_COUNT", "JOB_ACCOUNT", "JOB_QOS", "NTASKS", "CPUS_PER_TASK")}
TOLD |= {name for name in FOREIGN if "MEM_PER" in name}
Job = Callable[..., subprocess.CompletedProcess[str]]


def write(path: Path, text: str) -> None:
    path.write_text(f"#!/bin/bash\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    """Run a script as job 9 with a given Slurm record; Python prints the variables."""
    write(tmp_path / "python", "echo; env | grep -E '^S(LURM|RUN)_'; exit 3")
    write(tmp_path / "squeue", "echo 1:00:00")
    node = '[[ $* == "--oneliner show node node2" ]] && exec echo "NodeName=node2 "'
    write(tmp_path / "scontrol", f'{node}; [[ $* == "--oneliner show job 9" && $RECORD ]] || exit 1; echo "$RECORD"')
    with tempfile.TemporaryDirectory(prefix="b") as short:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "BUSSO_"))}
        environment |= {"BUSSO_PYTHON": str(tmp_path / "python"), "BUSSO_TMP": short, **OWN, **FOREIGN, **OF_SRUN}
        environment["PATH"] = f"{tmp_path}:{environment['PATH']}"

        def run(script: str, record: str, **more: str) -> subprocess.CompletedProcess[str]:
            command = ["bash", f"slurm/{script}", "runs/x"]
            given = environment | {"RECORD": record, **more}
            return subprocess.run(command, cwd=ROOT, env=given, check=False, capture_output=True, text=True)

        yield run


def variables(found: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """Return the variables seen by Python."""
    pairs = [line.partition("=") for line in found.stdout.splitlines() if line.startswith(("SLURM_", "SRUN_"))]
    return {name: value for name, _, value in pairs}


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_job_has_nothing_of_the_allocation_around_its_sbatch(job: Job, script: str) -> None:
    found = job(script, f"JobId=9 JobName=x {PLAIN} ")
    assert variables(found) == OWN, found.stderr


@pytest.mark.parametrize(
    ("record", "kept"),
    [
        (PLAIN.replace("Node=0", "Node=300M"), {"SLURM_MEM_PER_NODE"}),
        (PLAIN.replace("MemoryNode=0", "MemoryCPU=300M"), {"SLURM_MEM_PER_CPU"}),
        (f"{PLAIN} MemPerTres=gres:gpu:300", {"SLURM_MEM_PER_GPU"}),
        (PLAIN.replace("Restarts=0", "Restarts=7"), {"SLURM_RESTART_COUNT"}),
        (PLAIN.replace("(null)", "other"), {"SLURM_JOB_ACCOUNT", "SLURM_JOB_QOS"}),
        (f"ArrayJobId=6 ArrayTaskId=3 {PLAIN}", ARRAY),
        (f"{PLAIN} NumTasks=2 CPUs/Task=1", {"SLURM_NTASKS"}),
        (f"{PLAIN} NumTasks=1 CPUs/Task=3", {"SLURM_CPUS_PER_TASK"}),
    ],
)
def test_a_job_keeps_what_is_in_its_own_record(job: Job, record: str, kept: set[str]) -> None:
    """The last task of an array has the array's id, for which Slurm lists the other tasks as well."""
    other = "JobId=8 ArrayJobId=9 ArrayTaskId=2 Account=a QOS=b Restarts=1 MinMemoryCPU=1M MemPerTres=gres:gpu:1"
    found = job("evaluate.sh", f"{other} \nJobId=9 {record} ")
    assert variables(found) == OWN | {name: FOREIGN[name] for name in kept}, found.stderr


def test_an_array_around_its_sbatch_makes_no_array_of_a_sweep(job: Job) -> None:
    found = job("sweep.sh", f"JobId=9 JobName=x {PLAIN} ")
    assert found.returncode == 2 and "error: this is a job array: sbatch --array=0-7 slurm/sweep.sh" in found.stderr


def test_a_job_keeps_the_login_node_that_submitted_it(job: Job) -> None:
    """The cluster is not reachable from outside through a compute node."""
    found = job("evaluate.sh", f"JobId=9 {PLAIN} ", SLURM_SUBMIT_HOST="login")
    assert variables(found) == OWN | {"SLURM_SUBMIT_HOST": "login"}


def test_without_a_record_the_job_goes_on_and_says_so(job: Job) -> None:
    found = job("evaluate.sh", "")
    assert "scontrol does not show job 9" in found.stdout
    assert variables(found) == OWN | {name: FOREIGN[name] for name in TOLD}


def test_submitit_submits_without_the_allocation_around_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command's own variables are restored afterwards."""
    write(tmp_path / "srun", "exit 1")
    write(tmp_path / "sbatch", f"env >{tmp_path}/handed_on; exit 1")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, value in (OWN | FOREIGN).items():
        monkeypatch.setenv(name, value)
    words = ["game=sette_mezzo", f"runs={tmp_path}/runs", "-m", "hydra/launcher=submitit_slurm", "seed=1,2"]
    with pytest.raises(FailedJobError):
        main(words)
    handed_on = (tmp_path / "handed_on").read_text().splitlines()
    assert [line for line in handed_on if line.startswith("SLURM_")] == ["SLURM_CONF=/etc/slurm.conf"]
    assert {name: os.environ[name] for name in OWN | FOREIGN} == OWN | FOREIGN
