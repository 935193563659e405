"""Scripts in slurm/ tested without Slurm; tests/slurm tests them with it."""

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
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
while :; do sleep 0.1; done
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


def _stopped(folder: Path, short_folder: str, given: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Return the result of a job that received USR1."""
    put_commands(folder, COMMANDS)
    environment = {**ONE_NODE, "JOB": "9", "LIMIT": "", **given, "PATH": f"{folder}:{os.environ['PATH']}"}
    environment |= {"BUSSO_PYTHON": str(folder / "python"), "BUSSO_TMP": short_folder}
    found = bash("slurm/train_dqn.sh", "seed=1", **environment)
    assert found.returncode == 75, found.stderr
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
