"""Connection to a Ray cluster: the one of RAY_ADDRESS, or a private one.

`private.environment` keeps other users out of a private cluster; the other's owner is responsible for access to it.
"""

import logging
import os
import socket
import sys
import time
from ipaddress import ip_address
from typing import Any

import ray
from ray._private.node import Node
from ray.exceptions import AuthenticationError
from ray.util.placement_group import placement_group

from busso.base import system
from busso.command.settings.checks import SettingsError
from busso.train.rollout.ray import private
from busso.train.rollout.ray.messages import ASKED, INSTEAD
from busso.train.settings.dqn import RolloutSettings

CONNECT_SECONDS = 5.0


class MissingNodesError(SettingsError):
    """Nodes of the job that did not join; the exit code is EX_UNAVAILABLE, for job scripts."""

    exit_code = 69


class NotStartedError(Exception):
    """Failed start of Ray that a retry may fix, with a one-line message."""


def connect(rollout: RolloutSettings, learner_threads: int) -> int:
    """Join RAY_ADDRESS's cluster or start one within this job's limits; return its CPUs that the learner needs.

    A cluster started here leaves these out. Raises NotStartedError and SettingsError.
    """
    address = os.environ.get("RAY_ADDRESS")
    if address:
        _probe(address)
    os.environ.update(private.settings())
    # Keep the GPU visible to workers without a share of one: the learner's settings decide.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    # By default Ray waits a minute for a lost head before it ends attached processes.
    os.environ.setdefault("RAY_gcs_rpc_server_reconnect_timeout_s", "5")
    if not address:
        _start_no_monitors()
    started = {} if address else _own_cluster(rollout, learner_threads)
    try:
        cluster = ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **started)
    except Exception as error:  # Ray raises plain exceptions, too
        print(error, file=sys.stderr, flush=True)  # into the log, as the cause may be on another line
        text = next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
        wants_token = address and "RAY_AUTH_MODE" not in os.environ  # Ray's message does not mention it
        way_out = "if it uses a token, set RAY_AUTH_MODE=token" if wants_token else f"try {INSTEAD}"
        if wants_token or isinstance(error, (AuthenticationError, ValueError, TypeError, PermissionError)):
            raise SettingsError(ASKED, f"Ray did not start: {text}", way_out) from None
        raise NotStartedError(text) from None
    if not address:
        _check_private(cluster.address_info["node_ip_address"])
    _await_nodes(rollout)
    _check_resource("CPU", "rollout.workers", rollout.workers or 1)
    _check_resource("GPU", "rollout.gpus_per_worker", (rollout.workers or 1) * rollout.gpus_per_worker)
    return learner_threads if address else 0


def alive_nodes() -> list[dict[str, Any]]:
    """Return the live nodes of the cluster as Ray describes them."""
    return [node for node in ray.nodes() if node["Alive"]]


def amounts() -> dict[str, float]:
    """Return the total CPUs and GPUs of the cluster, in use or not."""
    there = ray.cluster_resources()
    return {name: there.get(name, 0.0) for name in ("CPU", "GPU")}


def reserve(cpus: int, workers: int) -> None:
    """Reserve CPUs of this node for this process, if the cluster has enough for all workers too."""
    if amounts()["CPU"] >= workers + cpus:
        here = f"node:{ray.util.get_node_ip_address()}"
        placement_group([{"CPU": cpus, here: 0.001}]).wait(timeout_seconds=CONNECT_SECONDS)


def describe_nodes() -> list[str]:
    """Return one line of resources per node."""
    lines = []
    for node in alive_nodes():
        has = node["Resources"]
        counts = ", ".join(f"{has.get(name, 0):g} {name}s" for name in ("CPU", "GPU"))
        memory, store = (has.get(name, 0) / 2**30 for name in ("memory", "object_store_memory"))
        sizes = f"{memory:.1f} GiB of memory, {store:.2f} GiB of object store"
        lines.append(f"{node['NodeManagerHostname']} ({node['NodeManagerAddress']}): {counts}, {sizes}")
    return lines


def _own_cluster(rollout: RolloutSettings, learner_threads: int) -> dict[str, Any]:
    """Return resource limits for a private cluster; Ray itself sees the whole machine, not the job."""
    started = {
        "num_cpus": rollout.workers or max(1, system.cpus() - learner_threads),  # Ray starts a process for each
        "include_dashboard": False,
        "object_store_memory": system.object_store(),
        "_memory": system.memory(),
    }
    return started | ({"num_gpus": 0} if rollout.gpus_per_worker == 0 else {})


def _start_no_monitors() -> None:
    """Leave out three Python processes of Ray 2.60, of 0.7 CPU seconds each, that have nothing to do in a run.

    The autoscaler has no nodes to add, `log_to_driver=False` needs no log monitor, and without the dashboard its server
    reports usage statistics only. No public setting leaves them out; a Ray without these methods starts what it wants.
    """
    for name, stand_in in (
        ("start_monitor", lambda node: None),
        ("start_log_monitor", lambda node: None),
        ("start_api_server", lambda node, **how: setattr(node, "_webui_url", "")),
    ):
        if hasattr(Node, name):
            setattr(Node, name, stand_in)


def _check_private(address: str) -> None:
    """Raise SettingsError if Ray is reachable from other machines, as another version might be."""
    if not ip_address(address).is_loopback:
        ray.shutdown()
        problem = f"Ray {ray.__version__} listens at {address}, which other machines can reach"
        raise SettingsError(ASKED, problem, f"install the version of constraints.txt, or try {INSTEAD}")


def _probe(address: str) -> None:
    """Raise SettingsError if RAY_ADDRESS does not answer; Ray itself would wait for minutes."""
    if address == "local":  # to Ray a new cluster, but not a private one
        raise SettingsError("RAY_ADDRESS", "local is not an address", "unset it to start a cluster here")
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()) or "/" in host:
        return  # "auto" and the like have no address to try
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise SettingsError(
            "RAY_ADDRESS", f"no cluster answers at {address} ({error})", "start one, or unset it"
        ) from None


def _await_nodes(rollout: RolloutSettings) -> None:
    """Wait until all nodes of the job have joined."""
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
