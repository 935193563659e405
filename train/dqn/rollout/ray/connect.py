"""A Ray cluster to play on: the one of RAY_ADDRESS, or one of this process alone.

The environment of the supervisor (`private.environment`) keeps other users out of the second. The owner of the first
decides who may use it.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from ipaddress import ip_address
from typing import Any

import ray
from ray.exceptions import AuthenticationError
from ray.util.placement_group import placement_group

from busso.command.settings.checks import SettingsError
from busso.train.dqn.rollout.ray.messages import ASKED, INSTEAD
from busso.train.run.metrics import resources
from busso.train.settings.dqn import RolloutSettings

CONNECT_SECONDS = 5.0


class MissingNodesError(SettingsError):
    """Nodes of the job did not join; `sysexits.h` calls it unavailable, and a job script can name them."""

    exit_code = 69


class NotStartedError(Exception):
    """Ray did not come up, for a reason that may be gone with the next start; one line."""


def connect(rollout: RolloutSettings) -> None:
    """Join the cluster of RAY_ADDRESS, or start one here within what this job may use.

    Raises NotStartedError and SettingsError.
    """
    address = os.environ.get("RAY_ADDRESS")
    if address:
        _probe(address)
    # Ray's own choice is the lowest priority but four: beside any other busy process of a node a worker then gets about
    # a hundredth of a core, and takes minutes to start. As much as the learner gets is what a job's CPUs are for.
    os.environ.setdefault("RAY_worker_niceness", "0")
    # Workers without a share of a GPU shall not have it hidden from them: the learner's settings decide.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # For a minute Ray would wait for a head that is gone, before it ends the processes that speak to it.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "5")
    # Ray remembers 100,000 tasks by default, some 300 MB after an hour; each rollout is one.
    os.environ.setdefault("RAY_task_events_max_num_task_in_gcs", "1000")
    started = {} if address else _own_cluster(rollout)
    try:
        cluster = ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **started)
    except Exception as error:  # Ray raises plain ones, too
        print(error, file=sys.stderr, flush=True)  # into the log: the cause may be in the other lines
        text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        wants_token = address and "RAY_AUTH_MODE" not in os.environ  # Ray does not say so itself
        way_out = "if it uses a token, set RAY_AUTH_MODE=token" if wants_token else f"try {INSTEAD}"
        if wants_token or isinstance(error, (AuthenticationError, ValueError, TypeError, PermissionError)):
            raise SettingsError(ASKED, f"Ray did not start: {text}", way_out) from None
        raise NotStartedError(text) from None
    if not address:
        _check_private(cluster.address_info["node_ip_address"])
    _await_nodes(rollout)
    _check_resource("CPU", "rollout.workers", rollout.workers or 1)
    _check_resource("GPU", "rollout.gpus_per_worker", (rollout.workers or 1) * rollout.gpus_per_worker)


def alive_nodes() -> list[dict[str, Any]]:
    """The nodes of the cluster that are alive, as Ray describes them."""
    return [node for node in ray.nodes() if node["Alive"]]


def amounts() -> dict[str, float]:
    """Return the numbers of CPUs and GPUs in the cluster now, taken or not."""
    there = ray.cluster_resources()
    return {name: there.get(name, 0.0) for name in ("CPU", "GPU")}


def reserve(cpus: int, workers: int) -> None:
    """Keep CPUs of this node for this process, so that workers take the others, if the cluster has enough for all."""
    if amounts()["CPU"] >= workers + cpus:
        here = f"node:{ray.util.get_node_ip_address()}"
        placement_group([{"CPU": cpus, here: 0.001}]).wait(timeout_seconds=CONNECT_SECONDS)


def describe_nodes() -> list[str]:
    """The resources of each node of the cluster, a line each."""
    return [
        f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}): {_has(node['Resources'])}"
        for node in alive_nodes()
    ]


def _has(resources_of_node: dict[str, float]) -> str:
    gib = {name: resources_of_node.get(name, 0) / 2**30 for name in ("memory", "object_store_memory")}
    counts = ", ".join(f"{resources_of_node.get(name, 0):g} {name}s" for name in ("CPU", "GPU"))
    return f"{counts}, {gib['memory']:.1f} GiB of memory, {gib['object_store_memory']:.2f} GiB of object store"


def _own_cluster(rollout: RolloutSettings) -> dict[str, Any]:
    """The resources that a cluster of this process may use. Ray itself looks at the whole machine, not at the job."""
    started = {
        "num_cpus": rollout.workers or resources.cpus(),
        "include_dashboard": False,
        "object_store_memory": resources.object_store(),
        "_memory": resources.memory(),
    }
    return started | ({"num_gpus": 0} if rollout.gpus_per_worker == 0 else {})


def _check_private(address: str) -> None:
    """Another version of Ray may need to be told otherwise to stay on this machine. Raises SettingsError."""
    if not ip_address(address).is_loopback:
        ray.shutdown()
        problem = f"Ray {ray.__version__} listens at {address}, which other machines can reach"
        raise SettingsError(ASKED, problem, f"install the version of constraints.txt, or try {INSTEAD}")


def _probe(address: str) -> None:
    """Ray waits for minutes for a cluster that is not there. Raises SettingsError."""
    if address == "local":  # to Ray a cluster of one's own, but not a private one
        raise SettingsError("RAY_ADDRESS", "local is not an address", "unset it to start a cluster here")
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()) or "/" in host:
        return  # "auto" and the like: nothing to knock at
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise SettingsError(
            "RAY_ADDRESS", f"no cluster answers at {address} ({error})", "start one, or unset it"
        ) from None


def _await_nodes(rollout: RolloutSettings) -> None:
    """Wait until as many nodes have joined as the job has."""
    end = time.monotonic() + rollout.join_seconds
    while len(there := [node["NodeManagerHostname"] for node in alive_nodes()]) < rollout.nodes:
        if time.monotonic() > end:
            joined = f"{len(there)} of {rollout.nodes} nodes joined within {rollout.join_seconds:g} s"
            hint = "check Ray's logs on the other nodes, or raise rollout.join_seconds"
            raise MissingNodesError("rollout.nodes", f"{joined} ({', '.join(sorted(there))})", hint)
        time.sleep(0.2)


def _check_resource(name: str, key: str, wanted: float) -> None:
    available = amounts()[name]
    if wanted > available:
        raise SettingsError(key, f"the workers need {wanted:g} {name}s, but the cluster has {available:g}")
