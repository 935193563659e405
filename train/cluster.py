"""Rollouts by Ray actors. This is the one file that imports Ray."""

from __future__ import annotations

import logging
import os
from typing import Any

import ray
import torch
from ray.exceptions import RayActorError

from cards.duplicate import Duel
from train.config import SettingsError, TrainSettings
from train.rollout import Evaluator, Rollout, RolloutWorker, Ticket, Weights

log = logging.getLogger("train")

WAIT_SECONDS = 1.0


def _device(gpus: float) -> torch.device:
    return torch.device("cuda" if gpus > 0 else "cpu")


class _WorkerActor:
    """`RolloutWorker` as an actor: weights come with every ticket, as a reference that Ray resolves."""

    def __init__(self, settings: TrainSettings) -> None:
        torch.set_num_threads(settings.rollout.threads)
        self._worker = RolloutWorker(settings, _device(settings.rollout.gpus_per_worker))

    def play(self, ticket: Ticket, version: int, weights: Weights) -> Rollout:
        self._worker.load(version, weights)
        return self._worker.play(ticket)

    def pid(self) -> int:
        return os.getpid()


class _EvaluatorActor:
    def __init__(self, settings: TrainSettings) -> None:
        torch.set_num_threads(1)
        self._evaluator = Evaluator(settings, torch.device("cpu"))
        self._deals = settings.evaluation.deals

    def duels(self, weights: Weights) -> dict[str, Duel]:
        return self._evaluator.duels(weights, "evaluation", self._deals)


class RayRollouts:
    """Workers on this machine or on the cluster of RAY_ADDRESS, each with `in_flight` tickets.

    A worker that dies is replaced and its tickets are played again. See `train.rollout.Rollouts` for the methods.
    """

    def __init__(self, settings: TrainSettings) -> None:
        self._settings = settings
        _connect(settings)
        self._worker_class = ray.remote(_WorkerActor).options(num_cpus=1, num_gpus=settings.rollout.gpus_per_worker)
        self._workers = [self._worker_class.remote(settings) for _ in range(settings.rollout.workers)]
        self._evaluator = ray.remote(_EvaluatorActor).options(num_cpus=0).remote(settings)
        self._weights: Any = None
        self._version = -1
        self._in_flight: dict[Any, tuple[int, Ticket]] = {}
        self._evaluations: dict[Any, int] = {}

    def publish(self, version: int, weights: Weights) -> None:
        """Put the weights into the object store once; every later ticket refers to them."""
        self._version, self._weights = version, ray.put(weights)

    def room(self) -> int:
        """Tickets that still fit, `in_flight` for each worker."""
        return self._settings.rollout.in_flight * len(self._workers) - len(self._in_flight)

    def submit(self, ticket: Ticket) -> None:
        """Give a ticket to the worker with the fewest."""
        loads = [0] * len(self._workers)
        for worker, _ in self._in_flight.values():
            loads[worker] += 1
        self._send(loads.index(min(loads)), ticket)

    def _send(self, worker: int, ticket: Ticket) -> None:
        reference = self._workers[worker].play.remote(ticket, self._version, self._weights)
        self._in_flight[reference] = (worker, ticket)

    def ready(self, wait: bool) -> list[Rollout]:
        """Rollouts in the order in which they were done."""
        if not self._in_flight:
            return []
        timeout = WAIT_SECONDS if wait else 0
        references, _ = ray.wait(list(self._in_flight), num_returns=1, timeout=timeout, fetch_local=True)
        done = []
        for reference in references:
            worker, ticket = self._in_flight.pop(reference)
            try:
                done.append(ray.get(reference))
            except RayActorError as error:
                self._replace(worker, ticket, error)
        return done

    def _replace(self, worker: int, ticket: Ticket, error: RayActorError) -> None:
        log.warning("rollout worker %d died and is replaced: %s", worker, str(error).splitlines()[0])
        lost = [ticket] + [t for _, (w, t) in list(self._in_flight.items()) if w == worker]
        self._in_flight = {r: (w, t) for r, (w, t) in self._in_flight.items() if w != worker}
        self._workers[worker] = self._worker_class.remote(self._settings)
        for each in lost:
            self._send(worker, each)

    def evaluate(self, tag: int, weights: Weights) -> None:
        """Start an evaluation beside the workers."""
        self._evaluations[self._evaluator.duels.remote(weights)] = tag

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        """Evaluations in the order in which they were done."""
        if not self._evaluations:
            return []
        pending = list(self._evaluations)
        done, _ = ray.wait(pending, num_returns=len(pending), timeout=None if wait else 0)
        return [(self._evaluations.pop(reference), ray.get(reference)) for reference in done]

    def describe(self) -> str:
        """One line on who plays."""
        rollout = self._settings.rollout
        nodes = sum(1 for node in ray.nodes() if node["Alive"])
        return f"ray: {rollout.workers} workers on {nodes} node(s), {rollout.in_flight} batches of {rollout.batch} each"

    def close(self) -> None:
        """End the actors; a cluster that was started here goes with them."""
        ray.shutdown()


def _connect(settings: TrainSettings) -> None:
    """Join the cluster of RAY_ADDRESS, or start one here with as many CPUs as workers."""
    rollout = settings.rollout
    address = os.environ.get("RAY_ADDRESS")
    started: dict[str, Any] = {} if address else {"num_cpus": rollout.workers, "include_dashboard": False}
    if not address and rollout.gpus_per_worker == 0:
        started["num_gpus"] = 0
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **started)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise SettingsError(
            f"rollout=ray: Ray did not start: {str(error).splitlines()[0]}; try rollout=local"
        ) from None
    wanted = rollout.gpus_per_worker * rollout.workers
    available = ray.cluster_resources().get("GPU", 0)
    if wanted > available:
        ray.shutdown()
        raise SettingsError(
            f"rollout.gpus_per_worker: {rollout.workers} workers want {wanted:g} GPUs, the cluster has {available:g}"
        )
