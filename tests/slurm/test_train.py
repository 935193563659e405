"""Training by slurm/train_dqn.sh: to the end, interrupted, on two nodes, beside and within other jobs."""

import re
import shlex
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from busso.base.lock import BEAT, STALE
from busso.train.run import checkpoint
from tests.slurm.cluster import Cluster, column

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(400)]

SMALL = (
    "device=cpu",  # a job with a GPU does not train on the CPU by default
    "rollout.games=32",
    "network.hidden=[16,16]",
    "learner.learning_starts=1000",
    "learner.batch_size=64",
    "learner.samples_per_insert=2",
    "exploration.fraction=0.5",
    "log_every_episodes=64",
    "log_min_seconds=0",
    "evaluation.min_seconds=0",
    "evaluation.opponents=[random]",
    "checkpoint.min_seconds=0",
    "checkpoint.max_seconds=0",
    "evaluation.every_episodes=100000000",
    "evaluation.deals=8",
    "evaluation.final_deals=8",
    "checkpoint.every_episodes=100000",
    "replay.capacity=20000",
)
NODE = ("--cpus-per-task=2", "--mem=4G")
ENDLESS = "episodes=100000000"


def submit(cluster: Cluster, name: str, *arguments: str) -> str:
    """Submit a training with sbatch options first, then settings."""
    options = [argument for argument in arguments if argument.startswith("-")]
    settings = [argument for argument in arguments if not argument.startswith("-")]
    return cluster.sbatch(*NODE, *options, "slurm/train_dqn.sh", *SMALL, f"name={name}", *settings)


def played(cluster: Cluster, name: str) -> int:
    return max(column(cluster.home / "runs" / "tressette" / name, "rollout/episodes"), default=0)


def first_update(cluster: Cluster, name: str, job: str) -> float:
    """Return the seconds until the first row of metrics with updates."""
    run = cluster.home / "runs" / "tressette" / name
    return cluster.until("an update", lambda: max(column(run, "train/updates"), default=0) > 0, 90, job)


def plays_on(cluster: Cluster, name: str, job: str, seconds: float = 90, games: int = 256) -> float:
    """Wait until `games` more games are played; return the seconds."""
    before = played(cluster, name)
    return cluster.until("more games", lambda: played(cluster, name) >= before + games, seconds, job)


def counters(cluster: Cluster, name: str) -> dict[str, int]:
    folder = cluster.home / "runs" / "tressette" / name / "checkpoints"
    state = checkpoint.load(checkpoint.listed(folder)[0])
    assert state["open_requests"] == []
    counted = state["counters"]
    # Forced moves are not learned from; their number depends on the playing weights, so it differs between runs.
    assert state["learner"]["updates"] == counted["inserted"] * 2 // 64
    return {key: counted[key] for key in ("episodes", "env_steps", "next_episode", "rollouts")}


def test_requeues_end_where_an_uninterrupted_run_ends(cluster: Cluster) -> None:
    """Two concurrent jobs on one node; one is preempted, and gets the signal before its time limit."""
    games = "episodes=3200"
    job = submit(cluster, "interrupted", "--nodelist=node1", games)
    beside = submit(cluster, "beside", "--nodelist=node1", "--partition=safe", "--time=20", games)
    begun = first_update(cluster, "interrupted", job)
    cluster.until("the other job plays", lambda: played(cluster, "beside") > 0, 60, beside)
    stops, stood = [], []
    for interruption in range(2):
        plays_on(cluster, "interrupted", job)
        stops.append(_interrupt(cluster, job, preempt=interruption == 0))
        stood.append(played(cluster, "interrupted"))
        cluster.start_now(job)
    assert cluster.ended(job, "COMPLETED", 120).restarts == 2
    cluster.ended(beside, "COMPLETED", 120)
    assert counters(cluster, "interrupted") == counters(cluster, "beside")
    assert counters(cluster, "interrupted")["env_steps"] == 3200 * 40
    rows = column(cluster.home / "runs" / "tressette" / "interrupted", "rollout/episodes")
    assert rows == sorted(set(rows)) and rows[-1] == 3200, "an interval of games is in metrics.csv once"
    assert "time limit 20:00: 13.0 minutes of training" in cluster.log(beside)
    text = cluster.log(job)
    assert ("Slurm requeues it" in text) == (cluster.version >= (24, 5)), "preempted: at its end, not by scontrol"
    assert text.count("time limit 4:00:00: 233.0 minutes of training") == 3
    assert text.count("goes back into the queue") == 2 and text.count("resumed from") == 2
    assert cluster.left_behind("node1") == []
    print(f"\ntwo jobs on a node: first update {begun:.0f} s after submission; USR1 to PENDING {stops} s")
    print(f"interrupted after {stood} episodes, at the end as the other run: {counters(cluster, 'interrupted')}")


def test_a_short_job_trains_although_its_signal_comes_at_once(cluster: Cluster) -> None:
    job = submit(cluster, "short", "--nodelist=node1", "--time=5", "rollout=local", "minutes=0.1")
    first_update(cluster, "short", job)
    cluster.usr1(job)
    assert cluster.ended(job, "COMPLETED", 60).restarts == 0
    assert "USR1 is held back for 1" in cluster.log(job) and "stopped by" not in cluster.log(job)
    assert cluster.left_behind("node1") == []


def _interrupt(cluster: Cluster, job: str, preempt: bool, cpus: int = 13) -> float:
    """Preempt the job by one that wants its CPUs too, or send the signal that precedes the time limit."""
    start = time.monotonic()
    if preempt:
        most = [f"--cpus-per-task={cpus}", "--mem=1G", "--nodelist=node1", "--partition=urgent", "--output=/dev/null"]
        cluster.sbatch(*most, "--wrap=sleep 2")
    else:
        cluster.usr1(job)
    cluster.until("back in the queue", lambda: cluster.job(job).state == "PENDING", 60, job)
    return round(time.monotonic() - start, 1)


@pytest.mark.timeout(600)
def test_loss_of_ray_on_a_node_of_all_of_ray_and_of_the_node(cluster: Cluster) -> None:
    """Ray restarts after being killed on a node; the job continues without a lost node.

    Meanwhile a job on node2 that wants the same run ends at the first one's next sign of life. Ray's head runs next to
    the trainer; killing its `gcs_server` ends it, and the job is requeued.
    """
    job = submit(cluster, "nodes", "-N2", "--nodelist=node[1-2]", ENDLESS)
    begun = first_update(cluster, "nodes", job)
    assert _workers(cluster, "node1") >= 1 and _workers(cluster, "node2") >= 1
    print(f"\ntwo nodes: first update {begun:.0f} s after submission")
    intruder = submit(cluster, "nodes", "--nodelist=node2", ENDLESS)
    cluster.run("pkill", "-KILL", "raylet", node="node2")
    cluster.until("its workers are gone", lambda: _workers(cluster, "node2") == 0, 20, job)
    plays_on(cluster, "nodes", job)
    back = cluster.until("Ray on node2 again", lambda: _workers(cluster, "node2") >= 1, 90, job)
    print(f"raylet of node2 killed: workers there again after {back:.0f} s")
    cluster.ended(intruder, "FAILED", 60 + BEAT)
    errors = [line for line in cluster.log(intruder).splitlines() if line.startswith("error:")]
    assert len(errors) == 1 and "in use by another process" in errors[0]
    saved = _ray_dies(cluster, "nodes", job)
    _resumes(cluster, "nodes", job, saved)
    cluster.kill_host("node2")
    try:
        plays_on(cluster, "nodes", job, games=512)
        # Not sinfo, which may report "mixed" for minutes while the CPUs count as used.
        node2 = ("scontrol", "--oneliner", "show", "node", "node2")
        down = cluster.until("Slurm misses node2", lambda: "State=DOWN" in cluster.run(*node2), 60, job)
        plays_on(cluster, "nodes", job)
        assert cluster.job(job).state == "RUNNING"
        print(f"node2 killed: Slurm saw it after {down:.0f} s, job on {cluster.job(job).fields['NodeList']} goes on")
    finally:
        cluster.lab("start-host", "node2")
    before = played(cluster, "nodes")
    _cancel(cluster, job, "node1")
    (newest, *_) = checkpoint.listed(cluster.home / "runs" / "tressette" / "nodes" / "checkpoints")
    assert checkpoint.load(newest)["counters"]["episodes"] >= before > saved["counters"]["episodes"]
    cluster.until("node2 is back", lambda: "idle" in cluster.run("sinfo", "-hNn", "node2", "-o%T"), 60)
    cluster.run("rm", "-rf", f"/tmp/busso-{job}", node="node2")  # a real node would have lost its files too


def _ray_dies(cluster: Cluster, name: str, job: str) -> dict[str, Any]:
    """Kill Ray's head on the first of two nodes; return the checkpoint of the requeued job."""
    before, heard = played(cluster, name), len(cluster.log(job))
    cluster.run("pkill", "-KILL", "gcs_server", node="node1")
    took = cluster.until("back in the queue", lambda: cluster.job(job).state == "PENDING", 90, job)
    print(f"\ngcs_server killed: back in the queue after {took:.1f} s")
    text = cluster.log(job)[heard:]
    assert "the trainer ended with exit code 75" in text and "SIG" not in text
    assert text.count("error: rollout=ray: the cluster was lost") == 1 and "goes back into the queue" in text
    assert "Ray is lost, see slurm/logs/ray-" in text
    state = checkpoint.load(checkpoint.listed(cluster.home / "runs" / "tressette" / name / "checkpoints")[0])
    assert state["counters"]["episodes"] >= max(before, 64)
    assert state["replay"]["inserted"] == state["counters"]["inserted"]
    assert state["counters"]["env_steps"] == 40 * state["counters"]["episodes"]
    cluster.until("clean nodes", lambda: not cluster.left_behind("node1") + cluster.left_behind("node2"), 20)
    return state


def _resumes(cluster: Cluster, name: str, job: str, saved: dict[str, Any]) -> None:
    """Check that the waiting job resumes from that checkpoint."""
    cluster.start_now(job)
    plays_on(cluster, name, job)
    assert f"resumed from {state_path(name, saved)}" in cluster.log(job)


def state_path(name: str, state: dict[str, Any]) -> Path:
    return checkpoint.path_for(Path("runs") / "tressette" / name / "checkpoints", state["counters"]["episodes"])


@pytest.mark.timeout(700)
def test_loss_of_the_first_node_puts_the_job_back(cluster: Cluster) -> None:
    """Learner, batch shell and Ray's head are lost with it; the other node requeues the job.

    The new start waits until the owner of the run counts as dead, because a node lost to Slurm may still write. Here it
    may know at once: a restarted node can have the number of its old, vanished PID namespace.
    """
    job = submit(cluster, "first", "-N2", ENDLESS, "checkpoint.every_episodes=64")
    first_update(cluster, "first", job)
    plays_on(cluster, "first", job)
    cluster.kill_host("node1")
    try:
        took = cluster.until("back in the queue", lambda: cluster.job(job).state == "PENDING", 150, job)
    finally:
        cluster.lab("start-host", "node1")
    print(f"\nnode1, with learner and head, killed: back in the queue after {took:.0f} s")
    cluster.until("node1 is back", lambda: "idle" in cluster.run("sinfo", "-hNn", "node1", "-o%T"), 60)
    cluster.run("bash", "-c", "rm -rf /tmp/busso-*", node="node1")  # a real node would have lost its files too
    before = played(cluster, "first")
    cluster.start_now(job)
    cluster.until("more games", lambda: played(cluster, "first") >= before + 256, 90 + STALE, job)
    assert "resumed from" in cluster.log(job) and cluster.job(job).restarts == 1
    cluster.run("scancel", job)
    cluster.until("clean nodes", lambda: not cluster.left_behind("node1") + cluster.left_behind("node2"), 15)


def _workers(cluster: Cluster, node: str) -> int:
    return cluster.run("ps", "-e", "-o", "args=", node=node).count("ray::WorkerActor")


def _cancel(cluster: Cluster, job: str, node: str) -> None:
    restarts, heard = cluster.job(job).restarts, len(cluster.log(job))
    cluster.run("scancel", job)
    took = cluster.until("a clean node", lambda: not cluster.left_behind(node), 15)
    state = cluster.ended(job, "CANCELLED", 15)
    assert state.restarts == restarts and "goes back into the queue" not in cluster.log(job)[heard:]
    assert cluster.run("squeue", "--noheader", f"--jobs={job}") == ""
    print(f"\nscancel: no process and no file on {node} after {took:.1f} s")


def test_node_that_stays_away(cluster: Cluster) -> None:
    number = int(cluster.sbatch("--output=/dev/null", "--wrap=true")) + 1
    folder = f"/tmp/busso-{number}"
    cluster.run("mkdir", folder, node="node2")
    cluster.run("mount", "-t", "tmpfs", "busy", folder, node="node2")  # can be neither removed nor created
    try:
        job = submit(cluster, "alone", "-N2", ENDLESS, "rollout.join_seconds=4")
        assert job == str(number)
        cluster.ended(job, "FAILED", 90)
    finally:
        cluster.run("umount", folder, node="node2")
        cluster.run("rmdir", folder, node="node2")
    assert f"error: node node2 did not join Ray, see slurm/logs/ray-{job}-node2.log" in cluster.log(job)
    assert f"cannot make {folder} on node2" in cluster.log(job)
    assert cluster.left_behind("node1") == cluster.left_behind("node2") == []


def test_sweep_requeues_one_task_and_ends_with_a_table(cluster: Cluster) -> None:
    """Two of the three runs of the grid; the table names the other."""
    arguments = ["rollout=local", *SMALL, "episodes=1024", "name=grid", "seed=0,1,2"]
    array = cluster.sbatch(*NODE, "--array=1-2", "slurm/sweep.sh", *arguments)
    last = f"{array}_2"
    cluster.until("both run", lambda: all("start 1" in cluster.log(f"{array}_{k}") for k in (1, 2)), 30, last)
    assert all("time limit 4:00:00: 233.0 minutes" in cluster.log(f"{array}_{k}") for k in (1, 2))
    cluster.usr1(last)  # the last array task has the array's own id
    cluster.start_now(last)
    assert cluster.ended(last, "COMPLETED", 120).restarts == 1
    assert cluster.ended(f"{array}_1", "COMPLETED", 120).restarts == 0
    table = re.search(r"Submitted batch job (\d+)", cluster.log(f"{array}_1"))
    assert table and cluster.log(last).count("Submitted batch job") == 0
    cluster.ended(table.group(1), "COMPLETED", 60)
    assert cluster.log(table.group(1)).count("not started: runs/tressette/grid,seed=0\n") == 1
    table = cluster.home / "runs" / "tressette" / f"compare-{array}" / "results.csv"
    assert len(table.read_text().splitlines()) == 3
    assert played(cluster, "grid,seed=1") == played(cluster, "grid,seed=2") == 1024
    assert cluster.left_behind("node1") == cluster.left_behind("node2") == []


def test_submitit_requeues_a_run_after_its_checkpoint(cluster: Cluster) -> None:
    """With Hydra's launcher, on USR2, which Slurm sends before its time limit."""
    node = ("hydra.launcher.cpus_per_task=2", "hydra.launcher.mem_gb=4")
    sweep = ("hydra/launcher=submitit_slurm", *node, "rollout=local", *SMALL, "minutes=0.25", "name=trial", "seed=1,2")
    with ThreadPoolExecutor(1) as pool:
        command = pool.submit(cluster.run, ".venv/bin/python", "-m", "busso.train", "-m", *sweep)
        cluster.until("the array", lambda: bool(_array(cluster)), 60)
        last = f"{_array(cluster)}_1"
        first_update(cluster, "trial,seed=2", last)
        cluster.run("scancel", "--signal=USR2", last)
        cluster.start_now(last)
        assert cluster.ended(last, "COMPLETED", 120).restarts == 1
        command.result(60)
    runs = [cluster.home / "runs" / "tressette" / f"trial,seed={seed}" for seed in (1, 2)]
    assert [(run / "train.log").read_text().count("resumed from") for run in runs] == [0, 1]
    assert all((run / "results.json").exists() for run in runs)
    assert cluster.left_behind("node1") == cluster.left_behind("node2") == []


def test_submitit_without_the_signal_and_with_a_run_that_fails(cluster: Cluster) -> None:
    """A preemption that sends only SIGTERM, with a grace time; the other task has the exit code of its run."""
    runs = [cluster.home / "runs" / "tressette" / f"term,seed={seed}" for seed in (1, 2)]
    runs[1].mkdir(parents=True)
    (runs[1] / "checkpoints").touch()
    node = ("hydra.launcher.cpus_per_task=2", "hydra.launcher.mem_gb=4")
    node += ("+hydra.launcher.additional_parameters.nodelist=node1",)
    sweep = ("hydra/launcher=submitit_slurm", *node, "rollout=local", *SMALL, "minutes=0.2", "name=term", "seed=1,2")
    with ThreadPoolExecutor(1) as pool, _without_signal(cluster):  # a job that is lost leaves the command waiting
        command = pool.submit(cluster.run, "timeout", "150", ".venv/bin/python", "-m", "busso.train", "-m", *sweep)
        cluster.until("the array", lambda: command.done() or bool(_array(cluster)), 60)
        array = _array(cluster)
        first_update(cluster, "term,seed=1", f"{array}_0")
        _interrupt(cluster, f"{array}_0", preempt=True, cpus=15)
        assert cluster.ended(f"{array}_1", "FAILED", 60).fields["ExitCode"] == "2:0"
        cluster.start_now(f"{array}_0")
        assert cluster.ended(f"{array}_0", "COMPLETED", 120).restarts == 1
        with pytest.raises(AssertionError, match="error: failed: term,seed=2 "):
            command.result(60)
    assert (runs[0] / "train.log").read_text().count("resumed from") == 1 and (runs[0] / "results.json").exists()
    assert cluster.left_behind("node1") == []


@contextmanager
def _without_signal(cluster: Cluster) -> Iterator[None]:
    """Take `preempt_send_user_signal` out of Slurm's configuration."""
    file = cluster.state / "etc" / "slurm.conf"
    before = file.read_text()
    try:
        file.write_text(before.replace("SlurmctldParameters=preempt_send_user_signal\n", ""))
        cluster.run("scontrol", "reconfigure")
        yield
    finally:
        file.write_text(before)
        cluster.run("scontrol", "reconfigure")


def _array(cluster: Cluster) -> str:
    """Return the id of the array that submitit has submitted."""
    return cluster.run("squeue", "--noheader", "--me", "--name=train", "--format=%F").partition("\n")[0]


TRAINING = (
    "game=blackjack",
    "episodes=64",
    "device=cpu",
    "rollout.games=16",
    "network.hidden=[8]",
    "replay.capacity=1000",
)


def test_a_step_of_an_array_task_submits_a_job_of_two_nodes(cluster: Cluster) -> None:
    """The task differs from the job in memory, tasks, binding, GPUs and restarts, and the job has no array."""
    inner = ("--mem=4G", "--time=20", "slurm/train_dqn.sh", *TRAINING, "evaluation.final_deals=8")
    command = ("sbatch", "--parsable", "-N2", "--cpus-per-task=2", "--gres=none", *inner)
    srun = "srun -n1 --cpu-bind=cores --distribution=cyclic env SRUN_OUTPUT=/dev/null"
    wrap = f"SLURM_RESTART_COUNT=7 {srun} {shlex.join(command)}"
    options = ("--array=3", "--ntasks-per-node=2", "--hint=nomultithread", "--gpus=2", "--mem-per-cpu=300")
    outer = cluster.sbatch(*options, "--output=slurm/logs/outer-%A_%a.out", f"--wrap={wrap}")
    cluster.ended(f"{outer}_3", "COMPLETED", 60)
    job = cluster.log(f"{outer}_3").split()[-1]
    cluster.ended(job, "COMPLETED", 180)
    assert ", start 1: python -m busso.train" in cluster.log(job) and "no time limit" not in cluster.log(job)
    node2 = (cluster.home / "slurm" / "logs" / f"ray-{job}-node2.log").read_text()
    assert "node2: 2 CPUs, 0 GPUs, 4096 MB of memory" in node2 and "exclusive" not in node2
    assert cluster.left_behind("node1") == cluster.left_behind("node2") == []
