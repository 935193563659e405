"""A second node plays more, where the formula of `busso doctor` says that the workers limit."""

import pytest

from busso.train.doctor.scaling import WORKERS, Scaling
from tests.slurm.cluster import Cluster
from tests.slurm.test_train import ENDLESS, _cancel, first_update, played, plays_on, submit

pytestmark = [pytest.mark.slurm, pytest.mark.slow, pytest.mark.ray, pytest.mark.timeout(400)]

GAMES = 20_000
# Large enough networks, and few enough updates, that the workers limit.
WORKERS_LIMIT = ("network.hidden=[256,256]", "rollout.games=256", "learner.samples_per_insert=0.01")


def test_a_second_node_plays_more(cluster: Cluster) -> None:
    """One worker on each. For direction alone: both nodes are one machine, and Ray and the learner share its CPUs."""
    rates = []
    for nodes in (1, 2):
        name, words = f"on_{nodes}", (f"rollout.workers={nodes}", f"rollout.nodes={nodes}")
        job = submit(cluster, name, f"-N{nodes}", ENDLESS, *WORKERS_LIMIT, *words)
        first_update(cluster, name, job)
        before = played(cluster, name)
        took = plays_on(cluster, name, job, games=GAMES)
        rates.append(40 * (played(cluster, name) - before) / took)
        _cancel(cluster, job, *[f"node{number}" for number in range(1, nodes + 1)])
    one, two = rates
    expected = Scaling(worker=one, updates=1e6, decisions=64 / 0.01)
    assert expected.on(3).limit == WORKERS
    print(f"\ndecisions/s: {one:,.0f} on one node, {two:,.0f} on two; by the formula {expected.on(3).decisions:,.0f}")
    assert two > 1.1 * one
