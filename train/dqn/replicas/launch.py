"""Where the replicas of a learner run, and how they start.

One command a node is the first replica there, and starts the others of its node by `torch.multiprocessing`. Variables
with the names of torchrun say which node it is: GROUP_RANK, GROUP_WORLD_SIZE, MASTER_ADDR and MASTER_PORT. Without them
there is one node. torchrun itself is not used: it ends its processes 30 seconds after a signal, in the middle of a
checkpoint or an evaluation, and does not hand their exit codes on.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from command.settings.checks import SettingsError
from train.run.metrics import resources
from train.run.signals import StopRequest
from train.settings.dqn import TrainSettings

if TYPE_CHECKING:  # PyTorch can be built without torch.distributed, which one learner does not need
    import torch.multiprocessing as mp
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

KEY = "learner.replicas"
LOOPBACK = "127.0.0.1"
STORE_TIMEOUT = timedelta(seconds=60)
JOIN_SECONDS = 300.0  # for a replica to start: PyTorch from a network's disk takes minutes


@dataclass(frozen=True)
class ReplicaPlace:
    """A replica: its rank among `size`, and its number on its node, one of `nodes`. The first listens at the port."""

    size: int
    nodes: int
    rank: int
    local: int
    address: str
    port: int

    @property
    def here(self) -> int:
        """How many replicas are on each node."""
        return self.size // self.nodes

    def beside(self, local: int) -> ReplicaPlace:
        """Another replica of the same node."""
        return replace(self, rank=self.rank - self.local + local, local=local)


def place_of(settings: TrainSettings) -> ReplicaPlace:
    """The first replica of this node. Raises SettingsError where the settings or nodes do not fit the replicas."""
    size, nodes = settings.learner.replicas, _number("GROUP_WORLD_SIZE", 1)
    if size % nodes:
        raise SettingsError(KEY, f"{size} replicas are not the same number on each of {nodes} nodes", "say a multiple")
    if settings.rollout.nodes > 1:
        raise SettingsError(KEY, "each replica plays on its own node", "leave rollout.nodes out")
    if settings.rollout.kind == "ray" and os.environ.get("RAY_ADDRESS"):
        raise SettingsError(KEY, "each replica starts a Ray of its own", "unset RAY_ADDRESS")
    if settings.device.startswith("cuda:"):
        raise SettingsError(KEY, f"each replica has a GPU of its own, and device={settings.device} is one", "say cuda")
    first = _number("GROUP_RANK", 0) * (size // nodes)
    address = os.environ.get("MASTER_ADDR", LOOPBACK) if nodes > 1 else LOOPBACK
    return ReplicaPlace(size, nodes, first, 0, address, _number("MASTER_PORT", 0) if nodes > 1 else 0)


def with_named_players(settings: TrainSettings, place: ReplicaPlace) -> TrainSettings:
    """The settings with a replica's share of the players that they name."""
    workers, threads = settings.rollout.workers, settings.rollout.actor_threads
    workers = None if workers is None else max(1, workers // place.size)
    threads = None if threads is None else max(1, threads // place.here)
    return replace(settings, rollout=replace(settings.rollout, workers=workers, actor_threads=threads))


def share_of(settings: TrainSettings, place: ReplicaPlace, on_gpu: bool) -> TrainSettings:
    """What a replica has of the replay buffer, and of the CPUs that play."""
    rollout = with_named_players(settings, place).rollout
    cpus = resources.cpus() // place.here - settings.learner.cpu_threads
    if rollout.kind == "ray":
        rollout = replace(rollout, workers=rollout.workers or max(1, cpus))
    elif rollout.kind == "threads":
        rollout = replace(rollout, actor_threads=rollout.actor_threads_on(on_gpu, cpus))
    held = replace(settings.replay, capacity=-(-settings.replay.capacity // place.size))
    return replace(settings, rollout=rollout, replay=held)


def listen(place: ReplicaPlace) -> tuple[TCPStore, ReplicaPlace]:
    """The store by which replicas talk, at a free port of the loopback address where all are on one node."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    try:
        listening = socket.create_server((place.address, place.port))
    except OSError as error:
        problem = f"cannot listen at {place.address}:{place.port} ({error.strerror})"
        raise SettingsError(KEY, problem, "start again with another MASTER_PORT, as a job does by itself") from None
    place = replace(place, port=listening.getsockname()[1])
    file = listening.detach()
    store = TCPStore(
        place.address, place.port, is_master=True, wait_for_workers=False, master_listen_fd=file, timeout=STORE_TIMEOUT
    )
    return store, place


def connect(place: ReplicaPlace) -> TCPStore:
    """The store of the first replica. Raises RuntimeError when it does not answer."""
    from torch.distributed import TCPStore  # type: ignore[attr-defined]

    store = TCPStore(place.address, place.port, is_master=False, timeout=timedelta(seconds=JOIN_SECONDS))
    store.set_timeout(STORE_TIMEOUT)
    return store


def start_beside(
    follow: Callable[..., None], settings: TrainSettings, place: ReplicaPlace, means: object
) -> list[mp.Process]:
    """Start the other replicas of this node: `follow(number, settings, place, parent, means)` in a process for each.

    What a terminal or a scheduler sends waits until they can take it.
    """
    from torch.multiprocessing.spawn import start_processes

    if place.here == 1:
        return []
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, StopRequest.SIGNALS)
    try:
        given = (settings, place, os.getpid(), means)
        context = start_processes(  # type: ignore[no-untyped-call]
            follow, given, place.here - 1, join=False, daemon=True, start_method="spawn"
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    return list(context.processes)


class Beats:
    """Signs of life of a replica in the store, from a thread of its own."""

    SECONDS = 5.0

    def __init__(self, store: TCPStore, rank: int) -> None:
        self._store, self._key = store.clone(), f"alive/{rank}"  # type: ignore[attr-defined]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._beat, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._stop.set()
        self._thread.join()

    def _beat(self) -> None:
        try:
            self._store.add(self._key, 1)
            while not self._stop.wait(self.SECONDS):
                self._store.add(self._key, 1)
        except RuntimeError:
            pass  # the first replica is gone: those that wait for it see that, too


def _number(name: str, otherwise: int) -> int:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else otherwise
