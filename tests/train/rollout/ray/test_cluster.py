"""Small runs with Ray: from games to a checkpoint, resumed, and while workers, Ray or the trainer die."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch

from busso.base.errors import EXIT_REQUEUE
from busso.cards.compiled.splitmix import stream
from busso.cards.duplicate import Duel
from busso.cards.play import never
from busso.train.__main__ import main
from busso.train.network.build import inference_network
from busso.train.rollout.backend import LocalBackend
from busso.train.rollout.ray.backend import RayBackend, nodes_of_cluster
from busso.train.rollout.ray.messages import SLOTS
from busso.train.rollout.ray.supervisor import descendants
from busso.train.rollout.request import Rollout, RolloutRequest, Weights
from busso.train.settings.dqn import TrainSettings
from tests.errors import error_line, key_of
from tests.limits import seconds, until
from tests.train.processes import LIMIT, alive, named, outside_cluster, trainer
from tests.train.runs import newest, settings, small

pytestmark = pytest.mark.ray


@pytest.mark.slow
def test_a_run_from_end_to_end_and_resumed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The first part runs without Ray, on which a checkpoint does not depend."""
    ray_run = ["rollout=ray", "rollout.workers=1", "rollout.games=32"]
    assert main(small(tmp_path, "episodes=160")) == 0
    assert main(small(tmp_path, *ray_run, "episodes=320")) == 0
    captured = capsys.readouterr()
    assert "ray: 1 workers" in captured.err and "resumed from" in captured.err and "random" in captured.out
    state = newest(tmp_path)
    assert state["counters"]["episodes"] == 320 and state["counters"]["env_steps"] == 320 * 40
    assert state["learner"]["updates"] == state["counters"]["inserted"] // 2 // 64
    assert state["open_requests"] == []


def assert_processes_are_as_they_should(learner: int) -> None:
    """Check that workers have the learner's priority, and that the learner has not loaded Ray.

    Ray would lower the workers' priority: on a busy machine one then took five minutes to start.
    """
    (worker,) = named(learner, "ray::WorkerActor")
    assert os.getpriority(os.PRIO_PROCESS, worker) == os.getpriority(os.PRIO_PROCESS, learner)
    (_, driver) = named(learner, "busso.train.rollout.ray.supervisor")
    assert "_raylet" in Path(f"/proc/{driver}/maps").read_text()
    assert "_raylet" not in Path(f"/proc/{learner}/maps").read_text()


@pytest.mark.slow  # effect of each signal without Ray: tests/train/test_runner.py
def test_scancel_leaves_a_checkpoint_and_no_process(tmp_path: Path) -> None:
    """Ray ends while the trainer saves, and its folder is removed."""
    ray_run = ("rollout=ray", "rollout.workers=1", "rollout.games=32")
    with (
        TemporaryDirectory(dir="/tmp", prefix="b") as short,
        trainer(tmp_path, *ray_run, RAY_TMPDIR=short) as process,
    ):
        assert len(list(Path(short).iterdir())) == 1
        pids = descendants(process.pid)
        assert len(pids) > 6
        assert_processes_are_as_they_should(process.pid)
        for pid in [*pids, process.pid]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        process.wait(LIMIT)
        text = (tmp_path / "stderr").read_text()
        assert process.returncode == 128 + signal.SIGTERM and "a checkpoint is in" in text and "Traceback" not in text
        assert not alive(pids) and not list(Path(short).iterdir())
    assert_nothing_is_forgotten(tmp_path)


def test_cluster_that_is_not_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    assert main(small(tmp_path, "rollout=ray")) == 2
    assert key_of(capsys.readouterr().err, alone=False) == "RAY_ADDRESS"


@pytest.mark.slow  # starts Ray
def test_nodes_of_a_cluster(tmp_path: Path) -> None:
    before = set(descendants(os.getpid()))  # includes Python's resource tracker if another test needed it
    (node,) = nodes_of_cluster(settings(tmp_path, "rollout=ray", "rollout.workers=2"))
    assert "2 CPUs" in node and "GiB of object store" in node
    assert not set(descendants(os.getpid())) - before


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
    """For the driver see `tests/field/other_system`, and without Ray `test_driver.py`."""
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
    # The run resumes even if Ray is gone for good; a test above resumes one with Ray.
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


def weights_of(chosen: TrainSettings) -> Weights:
    return inference_network(chosen.load_game(), chosen, torch.device("cpu")).float().state_dict()


def poll_until(rollouts: RayBackend, condition: Callable[[], bool]) -> None:
    """Poll the workers until the condition holds; no requests are in flight."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end
        assert not rollouts.ready(wait=True)


MIX = "opponents.phases=[{until: null, mix: {network: 0.6, random: 0.4}}]"


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> TrainSettings:
    ray_run = ("rollout=ray", "rollout.workers=2", "rollout.games=32", "rollout.heartbeat_seconds=5")
    # Workers get new weights ten times a second, certainly while they play 5,000 games.
    return settings(tmp_path_factory.mktemp("runs"), *ray_run, "rollout.publish_ms=100", MIX)


@pytest.fixture(scope="module")
def rollouts(chosen: TrainSettings) -> Iterator[RayBackend]:
    """Start two workers."""
    with closing(RayBackend(chosen)) as rollouts:
        rollouts.publish(0, weights_of(chosen))
        assert rollouts.free_slots() == 0  # no requests before workers have started, which might never happen
        poll_until(rollouts, lambda: rollouts.workers() == 2)
        yield rollouts


def workers() -> list[int]:
    return named(os.getpid(), "ray::WorkerActor")


def all_of(rollouts: RayBackend, requests: int) -> list[Rollout]:
    """Play this number of requests of 32 games each, whatever happens meanwhile."""
    done: list[Rollout] = []
    end = time.monotonic() + LIMIT
    while len(done) < requests:
        assert time.monotonic() < end
        done += rollouts.ready(wait=True)
    return done


def test_workers_play_what_a_local_worker_plays(chosen: TrainSettings, rollouts: RayBackend) -> None:
    """Including rollouts that are kept while later ones arrive, more than there are places for."""
    local = LocalBackend(chosen, torch.device("cpu"))
    local.publish(0, weights_of(chosen))
    done: list[Rollout] = []
    assert rollouts.free_slots() == 4
    for k in range(0, 4 * SLOTS, 4):
        for j in range(k, k + 4):
            rollouts.submit(RolloutRequest(32 * j, 32, 0.5))
        assert rollouts.free_slots() == 0
        done += all_of(rollouts, 4)
    assert sorted(rollout.request.first for rollout in done) == [32 * k for k in range(4 * SLOTS)]
    for rollout in done:
        local.submit(rollout.request)
        (own,) = local.ready(wait=True)
        np.testing.assert_equal(rollout.episode_return, own.episode_return)  # equal also where it is NaN
        assert rollout.weights_version == 0
        for a, b in zip(own.transitions, rollout.transitions, strict=True):
            assert (a == b).all()


def test_ray_runs_nothing_that_no_run_needs(rollouts: RayBackend) -> None:
    """Else there are its autoscaler's monitor, its log monitor, the server of its dashboard, and idle workers."""
    assert len(workers()) == 2
    unused = ("monitor.py", "log_monitor.py", "dashboard/dashboard.py", "ray::IDLE")
    assert not [name for name in unused if named(os.getpid(), name)]


def test_new_weights_reach_a_worker_before_its_next_batch(chosen: TrainSettings, rollouts: RayBackend) -> None:
    """Two requests wait at each worker; the second is played with weights published after its submission."""
    for k in range(4):
        long = k < 2  # longer, so that weights are published during these
        rollouts.submit(RolloutRequest(10_000 * k, 5_000 if long else 32, 0.5))
    rollouts.publish(1, weights_of(chosen))
    rollouts.publish(2, weights_of(chosen))
    versions = {rollout.request.first: rollout.weights_version for rollout in all_of(rollouts, 4)}
    assert versions[20_000] == versions[30_000] == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.slow)])
def test_rollouts_of_a_worker_that_dies_or_hangs_are_played_with_other_games(
    rollouts: RayBackend, number: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Once the short requests are back, each worker has a long one, which it has not finished."""
    victim = workers()[0]
    for k in range(4):
        rollouts.submit(RolloutRequest(10_000 * k, 32 if k < 2 else 10_000, 0.5))
    done = all_of(rollouts, 2)
    os.kill(victim, number)
    done += all_of(rollouts, 2)
    assert sorted(rollout.request.first for rollout in done) == [0, 10_000, 20_000, 30_000]
    again = [rollout.request for rollout in done if rollout.request.attempt]
    assert again
    seeds = [stream(1, name, 0, 32) for name in ("episodes", "episodes, attempt 1")]
    assert not (seeds[0] == seeds[1]).any()
    poll_until(rollouts, lambda: rollouts.workers() == 2)
    assert victim not in workers() and not alive([victim])
    assert "replacing a Ray worker" in caplog.text
    assert ("no progress for 5 s" in caplog.text) == (number == signal.SIGSTOP)


def test_an_evaluation_goes_on_when_all_workers_die(chosen: TrainSettings, rollouts: RayBackend) -> None:
    poll_until(rollouts, lambda: rollouts.workers() == 2)
    rollouts.evaluate(7, weights_of(chosen), never)
    for worker in workers():
        os.kill(worker, signal.SIGKILL)
    done: list[tuple[int, dict[str, Duel]]] = []
    while not done:
        done += rollouts.evaluated(wait=True)
    ((tag, duels),) = done
    assert tag == 7 and list(duels) == chosen.evaluation.opponents
    local = LocalBackend(chosen, torch.device("cpu"))
    local.evaluate(7, weights_of(chosen), never)
    ((_, own),) = local.evaluated(wait=True)
    assert all((duels[name].wins == own[name].wins).all() for name in own)
