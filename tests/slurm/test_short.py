"""Jobs without training: options, mistakes, tournaments, TensorBoard."""

import re
from pathlib import Path

import pytest

from tests.slurm.cluster import ROOT, Cluster

pytestmark = [pytest.mark.slurm, pytest.mark.timeout(400)]
SCRIPTS = sorted(path.name for path in (ROOT / "slurm").glob("*.sh"))


def test_slurm_would_run_them(cluster: Cluster) -> None:
    for script in SCRIPTS:
        for options in ([], ["-N", "2", "-p", "urgent", "--gres=gpu:l40:2", "-t", "10"], ["--gres=none"]):
            cluster.run("sbatch", "--test-only", *options, f"slurm/{script}", "seed=1")


def test_submitted_from_elsewhere(cluster: Cluster) -> None:
    """With a writable output, the job prints the reason; Slurm creates the output's folder from 23.02 on."""
    script, home = str(cluster.home / "slurm" / "train_dqn.sh"), str(cluster.home.parent)
    told = cluster.run("env", "-C", home, "sbatch", "--parsable", "--output=told.out", script)
    untold = cluster.run("env", "-C", home, "sbatch", "--parsable", script)
    cluster.ended(told, "FAILED", 20)
    why = f"{home} is not the root of busso; submit from there: sbatch slurm/train_dqn.sh"
    assert why in (cluster.home.parent / "told.out").read_text()
    job = cluster.ended(untold, "FAILED", 20)
    log = cluster.home.parent / "slurm" / "logs" / f"train_dqn-{untold}.out"
    if cluster.version < (23, 2):
        assert (job.fields["ExitCode"], job.fields["Reason"], log.exists()) == ("0:53", "JobLaunchFailure", False)
    else:
        assert job.fields["ExitCode"] == "2:0" and why in log.read_text()


def test_before_make_install(cluster: Cluster) -> None:
    venv = cluster.home / ".venv"
    target = venv.readlink()
    venv.unlink()
    try:
        job = cluster.sbatch("slurm/train_dqn.sh")
        assert cluster.ended(job, "FAILED", 20).fields["ExitCode"] == "2:0"
    finally:
        venv.symlink_to(target)
    assert "run 'make install' on the login node first" in cluster.log(job)
    assert cluster.left_behind("node1") == []


def test_a_setting_that_is_wrong_ends_the_job_with_one_line(cluster: Cluster) -> None:
    """On one node and on two, concurrently."""
    train = ("--cpus-per-task=1", "slurm/train_dqn.sh", "learner.lr=fast")
    for job in [cluster.sbatch(f"--nodes={nodes}", *train) for nodes in (1, 2)]:
        cluster.ended(job, "FAILED", 60)
        (line,) = [line for line in cluster.log(job).splitlines() if line.startswith("error:")]
        assert "learner.lr" in line


def test_doctor_sees_both_nodes(cluster: Cluster) -> None:
    job = cluster.sbatch("-N2", "--cpus-per-task=2", "--mem=4G", "slurm/doctor.sh", "device=cpu", "network.hidden=[32]")
    cluster.ended(job, "COMPLETED", 120)
    text = cluster.log(job)
    assert "node1 (10.77.0.11): 2 CPUs" in text and "node2 (10.77.0.12): 2 CPUs" in text
    assert "of memory" in text and "starts from scratch" in text and text.count("limits") == 1
    assert cluster.left_behind("node1") == cluster.left_behind("node2") == []


def test_tournament_and_site_env(cluster: Cluster, tmp_path: Path) -> None:
    site = cluster.home / "slurm" / "site.env"
    site.write_text((ROOT / "slurm" / "site.env.example").read_text() + "\necho this is the site\n")
    try:
        cpus = ("--cpus-per-task=2", "--mem-per-cpu=1G")
        options = ("players=[greedy,random]", "deals=16", f"folder={cluster.home}/t")
        job = cluster.sbatch(*cpus, "slurm/evaluate.sh", *options)
        cluster.ended(job, "COMPLETED", 120)
    finally:
        site.unlink()
    assert "this is the site" in cluster.log(job) and "16 duplicate deals a pair" in cluster.log(job)
    assert (cluster.home / "t" / "results.csv").exists()


def test_tensorboard_says_how_to_reach_it(cluster: Cluster) -> None:
    """By default only on its node; from the login node only on request. Both run concurrently."""
    ways = [
        r"ssh -N -J \S+@login -L 6006:127\.0\.0\.1:(\d+) \S+@(node\d)\n",
        r"ssh -N -L 6006:node\d:(\d+) \S+@login\n",
    ]
    jobs = [cluster.sbatch("slurm/tensorboard.sh", *given) for given in ([], ["--public"])]
    for public, (job, way) in enumerate(zip(jobs, ways, strict=True)):
        line = re.compile(way)
        cluster.until("the line", lambda job=job, line=line: line.search(cluster.log(job)) is not None, 30, job)
        found = line.search(cluster.log(job))
        assert found
        port, node = found[1], cluster.job(job).fields["NodeList"]
        assert public or node == found[2]
        assert ("warning: everybody on the cluster can look" in cluster.log(job)) == bool(public)
        host = node if public else "127.0.0.1"
        cluster.until("the page", lambda host=host, port=port, node=node: _answers(cluster, host, port, node), 60, job)
        assert _answers(cluster, node, port, "login") == bool(public)
    cluster.run("scancel", *jobs)
    cluster.until("clean nodes", lambda: not cluster.left_behind("node1") + cluster.left_behind("node2"), 15)


def test_a_table_says_how_to_reach_it(cluster: Cluster) -> None:
    """Only on its node, by the address in its log, which is private.

    It is submitted from a compute node, as in an allocation, where no host for logging in is known.
    """
    job = cluster.run("sbatch", "--parsable", "slurm/play.sh", "game=sette_mezzo", node="node1")
    line = re.compile(r"ssh -N -J \S+@LOGIN-NODE -L (\d+):127\.0\.0\.1:\1 \S+@(node\d)\n")
    address = re.compile(r"http://127\.0\.0\.1:(\d+)/([\w-]+/)\n")
    cluster.until("the address", lambda: address.search(cluster.log(job)) is not None, 60, job)
    told, found = line.search(cluster.log(job)), address.search(cluster.log(job))
    assert told and found and told[1] == found[1]
    port, node = found[1], cluster.job(job).fields["NodeList"]
    assert node == told[2]
    assert _answers(cluster, "127.0.0.1", f"{port}/{found[2]}", node)
    assert not _answers(cluster, "127.0.0.1", port, node)
    assert not _answers(cluster, node, f"{port}/{found[2]}", "login")
    assert all(path.stat().st_mode & 0o077 == 0 for path in (cluster.home / "slurm" / "logs").glob(f"play-{job}.out"))
    cluster.run("scancel", job)
    cluster.until("a clean node", lambda: cluster.left_behind(node) == [], 15)


def _answers(cluster: Cluster, address: str, port: str, host: str) -> bool:
    """Return whether a host can open the page; `port` may include a path."""
    page = f"import urllib.request; print(urllib.request.urlopen('http://{address}:{port}', timeout=20).status)"
    try:
        return cluster.run(".venv/bin/python", "-c", page, node=host) == "200"
    except AssertionError:
        return False
