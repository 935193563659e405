"""Ray may die at any moment, and kill the process attached to it: the run survives and nothing is left behind."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from busso.train.__main__ import main
from busso.train.rollout.ray.supervisor import descendants
from busso.train.run.signals import EXIT_REQUEUE
from tests.errors import error_line
from tests.limits import seconds, until
from tests.train.processes import alive, named, outside_cluster, trainer
from tests.train.runs import newest, small

pytestmark = pytest.mark.ray

RUN = ("rollout=ray", "rollout.games=32", "rollout.workers=1", "checkpoint.every_episodes=1000000")


def end_of(process: subprocess.Popen[str], runs: Path) -> str:
    """Wait for the process, and return its output."""
    process.wait(300)
    return (runs / "stderr").read_text()


def assert_nothing_is_forgotten(runs: Path) -> None:
    """Check that everything learned is saved, and that every other requested episode will be played again."""
    state = newest(runs)
    counters = state["counters"]
    assert counters["episodes"] > 0 and counters["env_steps"] == 40 * counters["episodes"]
    assert state["learner"]["updates"] > 0 and state["replay"]["inserted"] == counters["inserted"]
    assert counters["episodes"] + sum(count for _, count, _ in state["open_requests"]) == counters["next_episode"]


@pytest.mark.slow
def test_kill_of_the_raylet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For the driver see `tests/field/other_system`, and without Ray `tests/train/rollout/ray/test_driver.py`."""
    with trainer(tmp_path, *RUN) as process:
        everybody = descendants(process.pid)
        (pid,) = named(process.pid, "raylet/raylet")
        os.kill(pid, signal.SIGKILL)
        took = until("the trainer has ended", lambda: process.poll() is not None)
        text = end_of(process, tmp_path)
        print(f"\nthe raylet killed: the trainer ended after {took:.1f} s: {error_line(text)}")
        assert process.returncode == EXIT_REQUEUE and took < seconds(30)
        assert re.match(r"error: rollout=ray: the cluster was lost \(.+\); the same command resumes", error_line(text))
        assert not alive(everybody)
    assert_nothing_is_forgotten(tmp_path)
    episodes = newest(tmp_path)["counters"]["episodes"]
    # The run resumes even if Ray is gone for good; `test_cluster.py` resumes one with Ray.
    assert main(small(tmp_path, f"episodes={episodes + 64}")) == 0
    assert f"{episodes:,} episodes" in capsys.readouterr().err
    assert newest(tmp_path)["counters"]["episodes"] == episodes + 64


@pytest.mark.slow  # two runs on a private cluster
def test_an_outside_cluster_outlives_a_run_and_its_head_may_die(tmp_path: Path) -> None:
    """A run is killed, then the raylet under the next one; the cluster's other processes are not busso's to end."""
    with outside_cluster() as (address, cluster):
        with trainer(tmp_path / "killed", *RUN, RAY_ADDRESS=address) as process:
            mine, workers = descendants(process.pid), named(cluster, "ray::WorkerActor")
            process.kill()  # -9: nobody can notify Ray
            process.wait()
            until("what the run started has ended", lambda: not alive([*mine, *workers]))
            assert len(alive(named(cluster, "gcs_server") + named(cluster, "raylet/raylet"))) == 2
        kill_of_the_head(tmp_path, address, cluster)
    assert_nothing_is_forgotten(tmp_path)


def kill_of_the_head(tmp_path: Path, address: str, cluster: int) -> None:
    with trainer(tmp_path, *RUN, RAY_ADDRESS=address) as process:
        mine, theirs = descendants(process.pid), named(cluster, "gcs_server")
        workers = named(cluster, "ray::WorkerActor")
        assert len(mine) == 2 and len(theirs) == len(workers) == 1
        (raylet,) = named(cluster, "raylet/raylet")
        os.kill(raylet, signal.SIGKILL)
        took = until("the trainer has ended", lambda: process.poll() is not None)
        print(f"\nthe head's raylet killed: the trainer ended after {took:.1f} s")
        assert "the cluster was lost" in error_line(end_of(process, tmp_path))
        assert process.returncode == EXIT_REQUEUE and took < seconds(30)
        assert not alive(mine) and alive(theirs) == theirs
        until("the workers have ended", lambda: not alive(workers))


@pytest.mark.slow  # effect of each signal without Ray: tests/train/test_command.py
def test_a_second_ctrl_c_ends_at_once_and_leaves_nothing(tmp_path: Path) -> None:
    with trainer(tmp_path, *RUN) as process:
        everybody = descendants(process.pid)
        os.kill(process.pid, signal.SIGSTOP)  # so that both signals are pending when it continues
        for pid in everybody:  # as a terminal signals its foreground group
            os.kill(pid, signal.SIGINT)
        assert alive(everybody) == everybody
        process.send_signal(signal.SIGINT)
        os.kill(process.pid, signal.SIGCONT)
        until("the first is heard", lambda: "stopping with a checkpoint" in (tmp_path / "stderr").read_text())
        process.send_signal(signal.SIGINT)
        process.wait(300)
        assert process.returncode == 130
        until("everybody has ended", lambda: not alive(everybody), 60)


IMPORTS = """
import sys
import busso.train.rollout.ray.supervisor
assert not {"ray", "torch", "numpy"} & set(sys.modules)
import busso.train.__main__, busso.train.doctor.report, busso.train.rollout.ray.backend
import busso.evaluate.tournament.run
assert "ray" not in sys.modules
"""


def test_neither_supervisor_nor_learner_imports_ray() -> None:
    assert subprocess.run([sys.executable, "-c", IMPORTS], check=False).returncode == 0
