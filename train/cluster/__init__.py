"""Everything that knows Ray: nothing outside this package imports it."""

from train.cluster.connect import nodes_of_cluster
from train.cluster.rollouts import RayRollouts

__all__ = ["RayRollouts", "nodes_of_cluster"]
