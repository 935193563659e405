"""Whether Ray is there: it notices only after a minute that its head is gone, and then ends the process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import ray

from train.dqn.rollout.ray.cluster.connect import alive_nodes

PROBE_SECONDS = 0.5
REFUSALS = 2  # in a row: nobody listens at that port, so nobody lives who did
SILENT_SECONDS = 10.0  # without an answer of any kind: the machine or the network is gone


@dataclass
class Probe:
    """One of Ray's servers, and how it answered so far."""

    what: str
    host: str
    port: int
    refused: int = 0
    heard: float = 0.0

    def gone(self) -> bool:
        """Knock; whether there is no hope any more."""
        try:
            socket.create_connection((self.host, self.port), timeout=SILENT_SECONDS / 2).close()
        except ConnectionRefusedError:
            self.refused += 1
        except OSError:
            self.refused = 0
        else:
            self.refused, self.heard = 0, time.monotonic()
        return self.refused >= REFUSALS or time.monotonic() - self.heard > SILENT_SECONDS


class Watch(threading.Thread):
    """Knocks at the cluster's head and at the raylet of this node; calls `lost` with a reason, once."""

    def __init__(self, lost: Callable[[str], None]) -> None:
        super().__init__(daemon=True)
        context = ray.get_runtime_context()
        host, _, port = context.gcs_address.rpartition(":")
        self._probes = [Probe("its head", host, int(port))]
        own = context.get_node_id()
        for node in alive_nodes():
            if node["NodeID"] == own:
                raylet = Probe("the raylet of this node", node["NodeManagerAddress"], node["NodeManagerPort"])
                self._probes.append(raylet)
        self._lost = lost

    def run(self) -> None:
        """Until something is gone."""
        for probe in self._probes:
            probe.heard = time.monotonic()
        while True:
            for probe in self._probes:
                if probe.gone():
                    self._lost(f"{probe.what} does not answer at {probe.host}:{probe.port}")
                    return
            time.sleep(PROBE_SECONDS)
