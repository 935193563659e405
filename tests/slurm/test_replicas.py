"""A learner on each of two nodes: they learn together, and the job goes on from a checkpoint when one is gone."""

from typing import Any

import pytest

from tests.slurm.cluster import Cluster
from tests.slurm.test_train import ENDLESS, first_update, played, plays_on, state_path, submit
from train.run.checkpoint import checkpoint

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.timeout(600)]

TWO = ("-N2", "--nodelist=node[1-2]", "rollout=local", "learner.replicas=2", ENDLESS)


def test_a_learner_that_is_killed_and_a_node_that_is_lost(cluster: Cluster) -> None:
    """A checkpoint of all that was learned; the next start, of the same job, resumes it. Then scancel cleans both.

    A node that is lost gives the other no answer for a while; when it is back, the job goes on.
    """
    job = submit(cluster, "killed", *TWO)
    begun = first_update(cluster, "killed", job)
    plays_on(cluster, "killed", job)
    print(f"\na learner on each of two nodes: first update {begun:.0f} s after submission")
    cluster.run("pkill", "-KILL", "-f", "python -m train", node="node2")
    saved = _back_in_the_queue(cluster, "killed", job)
    assert "error: learner.replicas: a learner is gone (" in cluster.log(job)
    assert "the trainer ended with exit code 75" in cluster.log(job)
    cluster.until("clean nodes", lambda: not cluster.left_behind("node1") + cluster.left_behind("node2"), 20)
    cluster.start_now(job)
    plays_on(cluster, "killed", job)
    assert f"resumed from {state_path('killed', saved)}" in cluster.log(job)
    _lose_node2(cluster, "killed", job)
    before = played(cluster, "killed")
    cluster.run("scancel", job)
    cluster.until("clean nodes", lambda: not cluster.left_behind("node1") + cluster.left_behind("node2"), 20)
    folder = cluster.home / "runs" / "tressette" / "killed" / "checkpoints"
    newest, share = (checkpoint.listed(each)[0] for each in (folder, folder / "replica_1"))
    assert newest.name == share.name and checkpoint.load(newest)["counters"]["episodes"] >= before


def _lose_node2(cluster: Cluster, name: str, job: str) -> None:
    """The job goes back into the queue, and goes on when the node is back."""
    cluster.kill_host("node2")
    try:
        saved = _back_in_the_queue(cluster, name, job)
    finally:
        cluster.lab("start-host", "node2")
    cluster.until("node2 is back", lambda: "idle" in cluster.run("sinfo", "-hNn", "node2", "-o%T"), 60)
    cluster.run("bash", "-c", "rm -rf /tmp/busso-*", node="node2")  # it died with its files, as a real one would
    cluster.start_now(job)
    restarts = cluster.job(job).restarts
    begun = "2 learners on 2 nodes"  # twice before
    cluster.until("begun", lambda: cluster.log(job).count(begun) == 3 or cluster.job(job).restarts > restarts, 90, job)
    if cluster.log(job).count(begun) < 3:  # Slurm 22.05 may have lost the GPUs of this start (slurm/lib/replicas.sh)
        assert "Slurm makes no step on node2" in cluster.log(job)
        cluster.start_now(job)
    plays_on(cluster, name, job)
    assert f"resumed from {state_path(name, saved)}" in cluster.log(job)


def _back_in_the_queue(cluster: Cluster, name: str, job: str) -> dict[str, Any]:
    """The checkpoint with which the job waits."""
    before = played(cluster, name)
    took = cluster.until("back in the queue", lambda: cluster.job(job).state == "PENDING", 240, job)
    print(f"\n{name}: back in the queue after {took:.1f} s")
    state = checkpoint.load(checkpoint.listed(cluster.home / "runs" / "tressette" / name / "checkpoints")[0])
    assert state["counters"]["episodes"] >= before and state["replicas"] == 2
    return state
