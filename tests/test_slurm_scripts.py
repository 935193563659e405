"""Scripts in slurm/ without Slurm: jobs, Ray's nodes, nested allocations; tests/slurm has Slurm."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from submitit.core.utils import FailedJobError

from busso.train.__main__ import main
from tests.pages import ROOT

SCRIPTS = sorted((ROOT / "slurm").glob("*.sh"))
RECORD = 'echo "JobId=$SLURM_JOB_ID${SLURM_ARRAY_TASK_ID:+ ArrayTaskId=$SLURM_ARRAY_TASK_ID} Restarts=0 "'
SHELL = [*SCRIPTS, *sorted((ROOT / "slurm" / "lib").iterdir()), *sorted((ROOT / "tests" / "slurm" / "lab").iterdir())]


@pytest.fixture(autouse=True)
def scontrol(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fake Slurm's record of the job, equal to the variables."""
    folder = tmp_path_factory.mktemp("bin")
    put_commands(folder, {"scontrol": RECORD})
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


@pytest.fixture
def short_folder() -> Iterator[str]:
    """Return a short folder for BUSSO_TMP."""
    with tempfile.TemporaryDirectory(prefix="b") as folder:
        yield folder


def put_commands(folder: Path, commands: dict[str, str]) -> None:
    """Write scripts of bash."""
    for name, text in commands.items():
        (folder / name).write_text(f"#!/bin/bash\n{text}\n")
        (folder / name).chmod(0o755)


def bash(*words: str, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run bash with these variables and no other of Slurm or busso."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM_", "BUSSO_"))}
    return subprocess.run(
        ["bash", *words], cwd=cwd, env=plain | environment, check=False, capture_output=True, text=True
    )


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck() -> None:
    found = subprocess.run(
        ["shellcheck", "--external-sources", *map(str, SHELL)], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_run_without_slurm(script: Path) -> None:
    found = bash(str(script))
    assert (found.returncode, found.stderr) == (2, f"error: this runs as a Slurm job: sbatch slurm/{script.name}\n")


def test_logs_have_a_folder_and_are_not_committed() -> None:
    """Without the folder, Slurm fails without any log."""
    for script in SCRIPTS:
        assert re.search(r"^#SBATCH --output=slurm/logs/", script.read_text(), re.M)
    files = subprocess.run(["git", "ls-files", "slurm"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    if files:
        assert "slurm/logs/.gitkeep" in files and "slurm/site.env\n" not in files and ".out" not in files


def test_the_image_has_what_the_scripts_need() -> None:
    image = (ROOT / "slurm" / "apptainer.def").read_text()
    (command,) = re.findall(r"^ +(python -c 'import tomllib.*') >", image, re.M)
    assert {"torch", "ray", "optuna"} <= set(re.findall(r"^[\w-]+", bash("-c", command).stdout, re.M))


LIMITS = {
    "4:00:00": "233.0",
    "04:00:00": "233.0",
    "1-02:00:00": "1553.0",
    "10-08:09:08": "14882.1",
    "30:00": "23.0",
    "08:09": "4.0",
    "0:59": "0.4",
    "UNLIMITED": "",
    "Partition_Limit": "",
    "NOT_SET": "",
    "INVALID": "",
    "": "",
}


def test_minutes_of_training_that_a_time_limit_leaves() -> None:
    """Five minutes for the signal and two for start and end, but at most half of the time."""
    script = 'set -euo pipefail; source slurm/lib/budget.sh; for limit; do echo "$(minutes_of_training "$limit")"; done'
    found = bash("-c", script, "bash", *LIMITS)
    assert (found.stdout.split("\n")[:-1], found.stderr) == ([*LIMITS.values()], "")


def test_the_signal_comes_when_the_budget_says() -> None:
    (lead,) = re.findall(r"^SIGNAL_SECONDS=(\d+)", (ROOT / "slurm" / "lib" / "budget.sh").read_text(), re.M)
    for name in ("train_dqn.sh", "sweep.sh"):
        assert f"\n#SBATCH --signal=B:USR1@{lead}\n" in (ROOT / "slurm" / name).read_text()


COMMANDS = {
    # Like Slurm: the time limit of this task only, no requeueing, and no answer at first.
    "squeue": """
mkdir "$0.asked" && exit 1
[[ $* == "--noheader --jobs=$JOB --format=%l" && ! ${!SQUEUE_@} ]] && echo "$LIMIT"
""",
    "scontrol": f"""
case $* in
    *" show job 9") {RECORD[:-1]}$PREEMPTED" ;;
    "show config") echo "$CONFIG" ;;
    *" show partition low") echo "PartitionName=low PreemptMode=$MODE State=UP" ;;
    requeue*) echo "scontrol $*"; exit 1 ;;
    *) exit 1 ;;
esac""",
    "sleep": '[[ $1 == 10 ]] || exec /bin/sleep "$@"',
    # Like the trainer: stops when USR1 is sent to the job.
    "python": """
echo "python $* BUSSO_MINUTES=${BUSSO_MINUTES-}"
trap "exit 75" USR1
kill -USR1 $PPID
[[ ! ${TWICE-} ]] || { sleep 0.5 && kill -USR1 $PPID; }
for ((k = 0; k < ${TENTHS:-9999}; k++)); do sleep 0.1; done
""",
}
ONE_NODE = {"SLURM_JOB_ID": "9", "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "node1", "BUSSO_MINUTES": "77"}


@pytest.mark.parametrize(
    ("task", "job", "limit", "minutes"),
    [
        ({}, "9", "1:00:00", "53.0"),
        ({"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "3"}, "7_3", "30:00", "23.0"),
        ({}, "9", "UNLIMITED", ""),
        ({"SQUEUE_PARTITION": "other"}, "9", "1:00:00", "53.0"),  # a filter of the user's own
    ],
)
def test_a_job_trains_for_the_time_it_asked_for_and_asks_for_another_start(
    tmp_path: Path, short_folder: str, task: dict[str, str], job: str, limit: str, minutes: str
) -> None:
    found = _stopped(tmp_path, short_folder, {**task, "JOB": job, "LIMIT": limit})
    assert f"python -m busso.train seed=1 BUSSO_MINUTES={minutes}\n" in found.stdout
    assert ("no time limit" in found.stdout) == (not minutes)
    assert f"job {job} goes back into the queue\n" + 4 * f"scontrol requeue {job}\n" in found.stdout
    assert f"error: Slurm did not requeue job {job};" in found.stderr


@pytest.mark.parametrize(
    ("limit", "preempted", "code"),
    [
        ("5:00", "None", 0),
        ("11:59", "None", 0),
        ("12:00", "None", 75),
        ("2:00", "None", 75),  # no time is left
        ("5:00", "2026-11-27T02:43:00", 75),
        ("5:00", "", 75),  # without a record the job may be preempted
    ],
)
def test_a_short_job_trains_on_after_the_signal_unless_it_is_preempted(
    tmp_path: Path, short_folder: str, limit: str, preempted: str, code: int
) -> None:
    """Slurm sends USR1 up to six minutes before the limit, even if that is at the start."""
    given = {"LIMIT": limit, "PREEMPTED": f" PreemptTime={preempted} ", "TENTHS": "10"}
    said = _stopped(tmp_path, short_folder, given, code).stdout
    assert "SIGUSR1\n" in said and ("USR1 is held back for " in said) == (not code)


def test_a_second_signal_is_held_back_as_the_first(tmp_path: Path, short_folder: str) -> None:
    given = {"LIMIT": "5:00", "PREEMPTED": " PreemptTime=None ", "TENTHS": "10", "TWICE": "1"}
    said = _stopped(tmp_path, short_folder, given, 0).stdout
    assert said.count("SIGUSR1\n") == 2 and said.count("USR1 is held back for ") == 1


def test_a_signal_that_was_held_back_comes_two_minutes_before_the_limit(tmp_path: Path, short_folder: str) -> None:
    said = _stopped(tmp_path, short_folder, {"LIMIT": "2:04", "PREEMPTED": " PreemptTime=None "}).stdout
    assert "USR1 is held back for " in said and said.count("SIGUSR1\n") == 2


def _stopped(
    folder: Path, short_folder: str, given: dict[str, str], code: int = 75
) -> subprocess.CompletedProcess[str]:
    """Return the result of a job that received USR1."""
    put_commands(folder, COMMANDS)
    environment = {**ONE_NODE, "JOB": "9", "LIMIT": "", **given, "PATH": f"{folder}:{os.environ['PATH']}"}
    environment |= {"BUSSO_PYTHON": str(folder / "python"), "BUSSO_TMP": short_folder}
    found = bash("slurm/train_dqn.sh", "seed=1", **environment)
    assert found.returncode == code, found.stderr
    return found


CONFIG = {"SLURM_VERSION": "24.05.0", "PreemptType": "preempt/partition_prio", "MaxBatchRequeue": "5"}
PREEMPTED = {"PreemptTime": "2026-11-27T02:43:00", "Requeue": "1", "BatchFlag": "3"}


@pytest.mark.parametrize(
    ("config", "record", "mode", "itself"),
    [
        ({}, {}, "REQUEUE", True),
        ({"SLURM_VERSION": "26.05.1"}, {}, "GANG,REQUEUE", True),
        ({"SLURM_VERSION": "23.11.10"}, {}, "REQUEUE", False),
        ({"PreemptType": "preempt/qos"}, {}, "REQUEUE", False),
        ({}, {}, "CANCEL", False),
        ({}, {"PreemptTime": "None"}, "REQUEUE", False),  # at its time limit
        ({}, {"Requeue": "0"}, "REQUEUE", False),
        ({}, {"BatchFlag": "4"}, "REQUEUE", False),  # another start would be held
    ],
)
def test_a_preempted_job_leaves_it_to_slurm_to_requeue_it_where_it_does(
    tmp_path: Path, short_folder: str, config: dict[str, str], record: dict[str, str], mode: str, itself: bool
) -> None:
    """From 24.05 on; if the job requeued itself too, it would start again after its end."""
    given = {
        "SLURM_JOB_PARTITION": "low",
        "MODE": mode,
        "CONFIG": "\n".join(f"{key:<23} = {value}" for key, value in (CONFIG | config).items()),
        "PREEMPTED": "".join(f"{key}={value} " for key, value in (PREEMPTED | record).items()),
    }
    said = _stopped(tmp_path, short_folder, given).stdout
    assert "job 9 goes back into the queue\n" in said and ("\nscontrol requeue 9\n" not in said) == itself


@pytest.mark.parametrize(("task", "last", "submits"), [("3", "5", True), ("5", "5", False), ("3", "8", False)])
def test_the_first_task_of_an_array_submits_the_table_of_its_sweep(
    tmp_path: Path, short_folder: str, task: str, last: str, submits: bool
) -> None:
    """A subset of eight tasks, as in `--array=3,5`; an array numbered from 1 has no table."""
    python = '[[ ${SLURM_ARRAY_TASK_ID-} ]] || for ((k = 0; k < 8; k++)); do echo "run$k"; done'
    put_commands(tmp_path, {"python": python, "squeue": "", "sbatch": 'echo "sbatch $*"'})
    array = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_MIN": "3"}
    given = {**ONE_NODE, **array, "SLURM_ARRAY_TASK_MAX": last, "SLURM_JOB_PARTITION": "gpu"}
    given |= {"BUSSO_PYTHON": str(tmp_path / "python"), "BUSSO_TMP": short_folder}
    found = bash("slurm/sweep.sh", "seed=range(8)", **given, PATH=f"{tmp_path}:{os.environ['PATH']}")
    table = "--job-name=table-7 --partition=gpu --dependency=afterany:7 slurm/sweep_table.sh run0 run1 run2"
    assert found.returncode == 0 and (f"sbatch {table}" in found.stdout) == submits


def test_the_table_of_a_folder_with_an_apostrophe(tmp_path: Path, short_folder: str) -> None:
    put_commands(tmp_path, {"python": 'printf "%s\\n" "$@"'})
    given = {"SLURM_JOB_ID": "8", "SLURM_JOB_NAME": "table-7", "BUSSO_TMP": short_folder}
    found = bash("slurm/sweep_table.sh", "it's/seed=0", **given, BUSSO_PYTHON=str(tmp_path / "python"))
    assert "\nfolder='it\\'s/compare-7'\n" in found.stdout


def test_scripts_keep_their_line_ends_in_a_checkout_on_windows(tmp_path: Path) -> None:
    command = ["git", "-c", "core.autocrlf=true", "checkout-index", "--all", f"--prefix={tmp_path}/"]
    subprocess.run(command, cwd=ROOT, check=True)
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    scripts = [path for path in files if path.read_bytes().startswith(b"#!")]
    assert len(scripts) > 10 and not [path for path in scripts if b"\r" in path.read_bytes()]


def test_site_settings_with_the_line_ends_of_windows(tmp_path: Path) -> None:
    (tmp_path / "slurm").mkdir()
    (tmp_path / "slurm" / "lib").symlink_to(ROOT / "slurm" / "lib")
    (tmp_path / "slurm" / "site.env").write_bytes(b"# Python\r\nBUSSO_PYTHON=/usr/bin/python3\r\n")
    found = bash(str(ROOT / "slurm" / "evaluate.sh"), cwd=tmp_path, SLURM_JOB_ID="8")
    said = "error: slurm/site.env: line ends of Windows; remove them: sed -i 's/\\r$//' slurm/site.env\n"
    assert (found.returncode, found.stderr) == (2, said)


@pytest.mark.parametrize("arguments", [["--pubic"], ["--public", "--host"]])
def test_unknown_option_of_tensorboard(short_folder: str, arguments: list[str]) -> None:
    given = {"SLURM_JOB_ID": "8", "BUSSO_PYTHON": "false", "BUSSO_TMP": short_folder}
    found = bash("slurm/tensorboard.sh", *arguments, **given)
    assert found.returncode == 2
    assert found.stderr == f"error: {arguments[-1]}: the only option is --public, before the folder\n"


ON_NODE_1 = {"SLURM_JOB_ID": "8", "SLURMD_NODENAME": "node1", "SLURM_SUBMIT_HOST": "login", "USER": "me"}
_TENSORBOARD = """
[[ $* == "-m tensorboard.main --logdir runs --host 127.0.0.1 --port 0" ]] || exit 9
sleep 0.3
echo "TensorBoard 2.21.0 at http://127.0.0.1:$PORT/ (Press CTRL+C to quit)" >&2
"""


@pytest.mark.parametrize("port", ["45301", ""])
def test_tensorboard_chooses_its_port_itself(tmp_path: Path, short_folder: str, port: str) -> None:
    """A port that was free may be taken by now; if TensorBoard does not start, no port is printed."""
    put_commands(tmp_path, {"python": _TENSORBOARD if port else "exit 3"})
    given = {**ON_NODE_1, "BUSSO_PYTHON": str(tmp_path / "python"), "BUSSO_TMP": short_folder}
    found = bash("slurm/tensorboard.sh", PORT=port, **given)
    line = f"on your own machine:  ssh -N -J me@login -L 6006:127.0.0.1:{port} me@node1\n"
    assert (found.returncode, line in found.stdout) == ((0, True) if port else (3, False)), found.stderr


def test_a_table_on_a_node_says_how_to_reach_it_to_its_owner_alone(tmp_path: Path, short_folder: str) -> None:
    put_commands(tmp_path, {"python": 'echo "python $*"'})
    log = tmp_path / "log"
    environment = os.environ | ON_NODE_1 | {"BUSSO_PYTHON": str(tmp_path / "python"), "BUSSO_TMP": short_folder}
    log.touch(0o644)
    with log.open("w") as out:
        subprocess.run(["bash", "slurm/play.sh", "lang=it"], cwd=ROOT, env=environment, check=True, stdout=out)
    assert log.stat().st_mode & 0o077 == 0
    assert log.read_text() == "python -m busso.play lang=it serve=true port=0\n"


# Like a node that fails to start Ray six times, and is killed at the seventh.
_NODE = """
say() { echo "$*"; }
srun() { echo srun; [[ $(grep -c srun "$OUT") == 7 ]] && echo 'Ray runtime started'; return 1; }
sleep() { echo "sleep $1" >&3; [[ $1 != infinity ]] || exec sleep 60; }
source "$ROOT/slurm/lib/ray.sh"
OUT=$(ray_log node2)
keep_node node2 2 3>&1 &
until grep -q infinity out; do command sleep 0.02; done
kill -USR1 $!
wait $!
"""


def test_a_node_that_never_joins_is_not_asked_for_ever(tmp_path: Path) -> None:
    """The pauses grow, and restart from the shortest after a join; after twenty failures the job runs without it."""
    (tmp_path / "slurm" / "logs").mkdir(parents=True)
    environment = {**os.environ, "SLURM_JOB_ID": "9", "ROOT": str(ROOT), "RAY_ADDRESS": "10.0.0.1:1"}
    with (tmp_path / "out").open("w") as out:
        subprocess.run(["bash", "-c", _NODE], cwd=tmp_path, env=environment, check=True, stdout=out, timeout=20)
    *said, given_up, last = (tmp_path / "out").read_text().splitlines()
    pauses = [int(line.removeprefix("sleep ")) for line in said if line.startswith("sleep")]
    assert pauses == [10, 20, 40, 80, 160, 300, 10, 20, 40, 80, 160, *[300] * 15]
    assert given_up.startswith("Ray did not start on node2 20 times in a row") and last == "sleep infinity"


# Like Ray read from a slow disk; `sleep` moves the clock.
_SLOW_HEAD = """
source "$ROOT/slurm/lib/ray.sh"
tmp=$PWD ray_nodes=(node1) ray_head=$$
mkdir ray
sleep() { SECONDS=$((SECONDS + 1)); ((SECONDS < 200)) || echo 10.0.0.1:1 >ray/ray_current_cluster; }
wait_for_head && echo "$RAY_ADDRESS"
"""


def test_a_head_may_take_minutes_to_start(tmp_path: Path) -> None:
    found = bash("-c", _SLOW_HEAD, cwd=tmp_path, SLURM_JOB_ID="9", ROOT=str(ROOT))
    assert (found.stdout, found.stderr) == ("10.0.0.1:1\n", "")


_DEAF_NODES = """
source "$ROOT/slurm/lib/ray.sh"
deaf() { trap "" USR1; exec sleep 60; }
deaf & ray_head=$!
for node in 2 3 4; do deaf & ray_keepers+=($!); done
command sleep 0.2
sleep() { SECONDS=$((SECONDS + 1)); }
SECONDS=0
stop_ray && echo "$SECONDS"
"""


def test_nodes_that_do_not_end_are_not_waited_for_one_by_one() -> None:
    found = bash("-c", _DEAF_NODES, SLURM_JOB_ID="9", ROOT=str(ROOT))
    assert 12 <= int(found.stdout) < 20


def test_ray_may_open_as_many_files_as_the_system_allows(tmp_path: Path) -> None:
    python = '[[ $1 == -c ]] && echo 2 100 100 || echo "files: $(ulimit -Sn) of $(ulimit -Hn)"'
    put_commands(tmp_path, {"python": python, "getent": "echo 10.0.0.1"})
    given = {"BUSSO_PYTHON": str(tmp_path / "python"), "BUSSO_TMP_OF_JOB": str(tmp_path / "tmp")}
    given |= {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    found = bash("-c", "ulimit -Sn 256; ulimit -Hn 512; slurm/lib/ray-node head 2", **given)
    assert "files: 512 of 512\n" in found.stdout, found.stderr


JOBS = sorted(path.name for path in (ROOT / "slurm").glob("*.sh") if path.name != "sweep.sh")
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


@pytest.mark.parametrize("script", JOBS)
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


def test_ray_gets_the_settings_of_python_unless_the_site_has_others(tmp_path: Path) -> None:
    python = f'[[ $1 == -c ]] && exec {sys.executable} "$@"; echo "$RAY_worker_niceness $RAY_event_stats"'
    put_commands(tmp_path, {"python": python, "getent": "echo 10.0.0.1"})
    given = {"BUSSO_PYTHON": str(tmp_path / "python"), "BUSSO_TMP_OF_JOB": str(tmp_path / "tmp")}
    given |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RAY_worker_niceness": "5"}
    found = bash("-c", "unset RAY_event_stats; slurm/lib/ray-node head 2", **given)
    assert "\n5 0\n" in found.stdout, found.stderr
