"""Jobs submitted from within another allocation: a notebook's, an array task's, or salloc's."""

import shlex

import pytest

from tests.slurm.cluster import Cluster

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(400)]

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
