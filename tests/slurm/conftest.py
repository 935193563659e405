"""A cluster of two nodes for all tests of this folder."""

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.slurm.cluster import Cluster, checkout, why_not


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """Start a cluster, or skip with the reason. Node names are machine-wide, so only one can run at a time."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    with Path("/run/lock/busso-slurm-lab.lock").open("w") as alone:
        fcntl.flock(alone, fcntl.LOCK_EX)
        # Not pytest's folder: Ray and Slurm need short paths, and a node mounts this one.
        base = Path(tempfile.mkdtemp(prefix="slurm-lab-"))
        cluster = Cluster(Path("/run") / base.name, checkout(base / "busso"))
        try:
            cluster.lab("up", "2")
            yield cluster
        finally:
            cluster.lab("down")
            shutil.rmtree(base)


@pytest.fixture(autouse=True)
def clean(request: pytest.FixtureRequest) -> Iterator[None]:
    """Cancel leftover jobs of a failed test."""
    yield
    if "cluster" in request.fixturenames:
        cluster: Cluster = request.getfixturevalue("cluster")
        cluster.run("scancel", "--user=root")
        cluster.until("an empty queue", lambda: not cluster.run("squeue", "--noheader"), 60)
