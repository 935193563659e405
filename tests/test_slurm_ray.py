"""slurm/lib/ray.sh tested without Slurm and Ray."""

import os
import subprocess
import sys
from pathlib import Path

from tests.test_slurm_scripts import ROOT, bash, put_commands

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


def test_ray_gets_the_settings_of_python_unless_the_site_has_others(tmp_path: Path) -> None:
    python = f'[[ $1 == -c ]] && exec {sys.executable} "$@"; echo "$RAY_worker_niceness $RAY_event_stats"'
    put_commands(tmp_path, {"python": python, "getent": "echo 10.0.0.1"})
    given = {"BUSSO_PYTHON": str(tmp_path / "python"), "BUSSO_TMP_OF_JOB": str(tmp_path / "tmp")}
    given |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RAY_worker_niceness": "5"}
    found = bash("-c", "unset RAY_event_stats; slurm/lib/ray-node head 2", **given)
    assert "\n5 0\n" in found.stdout, found.stderr
