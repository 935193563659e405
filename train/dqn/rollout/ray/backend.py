"""RolloutBackend of Ray workers, in the learner's process. No Ray here: see `train/dqn/rollout/ray/`."""

import logging
import os
import pickle
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from busso.cards.matches.duplicate import Duel
from busso.cards.stopping import Stop, never
from busso.train.dqn.replay.transitions import transitions_for
from busso.train.dqn.rollout.ray.messages import Layout, Order, WeightArrays
from busso.train.dqn.rollout.ray.process import RayProcess
from busso.train.dqn.rollout.request import Rollout, RolloutRequest, Weights
from busso.train.settings.dqn import TrainSettings

log = logging.getLogger("train")

WAIT_SECONDS = 1.0
_LOG = "ray.log"  # Ray's own output, in the run folder


class RayBackend:
    """Workers on this machine or the cluster of RAY_ADDRESS, each with `in_flight` requests.

    For the methods see `busso.train.dqn.rollout.backend.RolloutBackend`; they wait for Ray only if asked to. If the
    cluster is lost, `ready` returns the remaining rollouts, then raises BackendLostError.
    """

    def __init__(self, settings: TrainSettings, describe_nodes: bool = False) -> None:
        """Start the Ray process; with `describe_nodes` only to describe the nodes of its cluster."""
        self._rollout, self._kind = settings.rollout, transitions_for(settings.target)
        self._lock = threading.Condition()  # guards everything that the receiving thread writes
        self._description = ""
        self._workers = 0
        self._rollouts: deque[tuple[Rollout, int, Layout]] = deque()  # with the slot of the arrays
        self._evaluations: deque[tuple[int, dict[str, Duel]]] = deque()
        self._warnings: deque[str] = deque()
        self._out = 0  # requests in flight
        self._evaluating = 0
        self._published = 0.0
        order = Order(settings.rollout, settings.learner.cpu_threads, pickle.dumps(settings), describe_nodes)
        says = Path(os.devnull) if describe_nodes else settings.folder / _LOG
        self._process = RayProcess(order, says, self._rollout.heartbeat_seconds, self._on_message)
        self._process.listen()

    def _on_message(self, name: str, *message: Any) -> None:
        """Handle a message from the Ray process, in the receiving thread."""
        with self._lock:
            if name == "hello":
                (self._description,) = message
            elif name == "workers":
                (self._workers,) = message
            elif name == "warning":
                self._warnings += message
            elif name == "rollout":
                rollout, slot, layout = message
                self._rollouts.append((rollout, slot, layout))
            elif name == "evaluated":
                tag, duels = message
                self._evaluations.append((tag, pickle.loads(duels)))
            self._lock.notify_all()

    def wants_weights(self) -> bool:
        return not self._published or time.monotonic() - self._published >= self._rollout.publish_ms / 1000

    def publish(self, version: int, weights: Weights) -> None:
        """Send the weights to workers with the next heartbeat or request."""
        self._published = time.monotonic()
        self._process.say("publish", version, _arrays(weights))

    def workers(self) -> int:
        """Return the number of workers that have started."""
        return self._workers

    def free_slots(self) -> int:
        """Return the number of requests that may be submitted, with `in_flight` per started worker."""
        return 0 if self._process.failure else self._rollout.in_flight * self._workers - self._out

    def submit(self, request: RolloutRequest) -> None:
        self._out += 1
        self._process.say("submit", request)

    def ready(self, wait: bool) -> list[Rollout]:
        """Return the oldest finished rollout."""
        if wait:
            self._wait(lambda: bool(self._rollouts))
        self._warn()
        if not self._rollouts:
            self._raise_failure()
            return []
        rollout, slot, layout = self._rollouts.popleft()
        arrays = self._process.slots[slot].read(layout)
        self._process.say("free", slot)
        self._out -= 1
        return [replace(rollout, transitions=self._kind._make(arrays))]

    def evaluate(self, tag: int, weights: Weights, stop_requested: Stop) -> None:
        """Start an evaluation, see `RolloutBackend`; `close` ends it."""
        self._evaluating += 1
        self._process.say("evaluate", tag, _arrays(weights))

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        if wait and self._evaluating:
            self._wait(lambda: bool(self._evaluations))
            if not self._evaluations:
                self._raise_failure()
        self._warn()
        done = [self._evaluations.popleft() for _ in range(len(self._evaluations))]
        self._evaluating -= len(done)
        return done

    def describe(self, stop_requested: Stop) -> str:
        """Wait until the workers have been requested and describe them. Raises SettingsError if there are none."""
        while not self._description and not stop_requested():
            self._wait(lambda: bool(self._description))
            if not self._description:
                self._raise_failure()
        return self._description

    def close(self) -> None:
        """End all processes started here."""
        self._process.close()

    def _wait(self, done: Callable[[], bool]) -> None:
        """Wait up to a second, and not at all after a failure."""
        with self._lock:
            self._lock.wait_for(lambda: done() or self._process.failure is not None, WAIT_SECONDS)

    def _warn(self) -> None:
        while self._warnings:
            log.warning("%s", self._warnings.popleft())

    def _raise_failure(self) -> None:
        if self._process.failure is not None:
            raise self._process.failure


def _arrays(weights: Weights) -> WeightArrays:
    return {name: tensor.cpu().numpy() for name, tensor in weights.items()}


def nodes_of_cluster(settings: TrainSettings) -> list[str]:
    """Return one line of resources per node of `RayBackend`'s cluster. Raises UserError."""
    with closing(RayBackend(settings, describe_nodes=True)) as backend:
        return backend.describe(never).splitlines()
