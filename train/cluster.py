"""Rollouts by Ray actors. This is the one file that imports Ray."""

from __future__ import annotations

import logging
import os
import socket
from typing import Any

import ray
import torch
from ray.exceptions import RayError, RayTaskError

from cards.duplicate import Duel
from train.checks import SettingsError
from train.config import TrainSettings
from train.rollout import Evaluator, Rollout, RolloutWorker, Ticket, Weights

log = logging.getLogger("train")

WAIT_SECONDS = 1.0
CONNECT_SECONDS = 5.0
DEATHS_IN_A_ROW = 5  # of actors, with nothing done in between, end the run


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
        self._evaluator_class = ray.remote(_EvaluatorActor).options(num_cpus=0)
        self._evaluator = self._evaluator_class.remote(settings)
        self._weights: Any = None
        self._version = -1
        self._in_flight: dict[Any, tuple[int, Ticket]] = {}
        self._evaluations: dict[Any, tuple[int, Weights]] = {}
        self._deaths = {"worker": 0, "evaluator": 0}

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
                self._deaths["worker"] = 0
            except RayTaskError:
                raise  # an error of ours, which would come again
            except RayError as error:  # the worker, its node, or what it left behind is gone
                self._mourn("worker", error)
                self._replace(worker, ticket)
        return done

    def _mourn(self, who: str, error: RayError) -> None:
        reason = " ".join(str(error).split())[:300]
        self._deaths[who] += 1
        if self._deaths[who] >= DEATHS_IN_A_ROW:
            raise SettingsError(f"rollout=ray: actors die one after another ({reason}); try rollout=local to see why")
        log.warning("a Ray %s died and is replaced: %s", who, reason)

    def _replace(self, worker: int, ticket: Ticket) -> None:
        lost = [ticket] + [t for _, (w, t) in list(self._in_flight.items()) if w == worker]
        self._in_flight = {r: (w, t) for r, (w, t) in self._in_flight.items() if w != worker}
        self._workers[worker] = self._worker_class.remote(self._settings)
        for each in lost:
            self._send(worker, each)

    def evaluate(self, tag: int, weights: Weights) -> None:
        """Start an evaluation beside the workers."""
        self._evaluations[self._evaluator.duels.remote(weights)] = (tag, weights)

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        """Evaluations in the order in which they were done; if the evaluator dies they start again with another."""
        results: list[tuple[int, dict[str, Duel]]] = []
        while self._evaluations:
            pending = list(self._evaluations)
            done, _ = ray.wait(pending, num_returns=len(pending) if wait else 1, timeout=None if wait else 0)
            if not done:
                break
            results += [result for reference in done for result in self._result(reference)]
        return results

    def _result(self, reference: Any) -> list[tuple[int, dict[str, Duel]]]:
        tag, weights = self._evaluations.pop(reference)
        try:
            result = ray.get(reference)
            self._deaths["evaluator"] = 0
            return [(tag, result)]
        except RayTaskError:
            raise
        except RayError as error:
            self._mourn("evaluator", error)
            self._evaluator = self._evaluator_class.remote(self._settings)
            self.evaluate(tag, weights)
            return []

    def describe(self) -> str:
        """One line on who plays."""
        rollout = self._settings.rollout
        nodes = sum(1 for node in ray.nodes() if node["Alive"])
        return f"ray: {rollout.workers} workers on {nodes} node(s), {rollout.in_flight} batches of {rollout.batch} each"

    def close(self) -> None:
        """End the actors; a cluster that was started here goes with them."""
        ray.shutdown()


def _connect(settings: TrainSettings) -> None:
    """Join the cluster of RAY_ADDRESS, or start one here with as many CPUs as workers. Raises SettingsError."""
    rollout = settings.rollout
    address = os.environ.get("RAY_ADDRESS")
    started: dict[str, Any] = {} if address else {"num_cpus": rollout.workers, "include_dashboard": False}
    if not address and rollout.gpus_per_worker == 0:
        started["num_gpus"] = 0
    if address:
        _probe(address)
    # Workers without a share of a GPU shall not have it hidden from them: the learner's settings decide.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    try:
        ray.init(address=address or "local", logging_level=logging.ERROR, log_to_driver=False, **started)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise SettingsError(
            f"rollout=ray: Ray did not start: {str(error).splitlines()[0]}; try rollout=local"
        ) from None
    _check_resource("CPU", "rollout.workers", rollout.workers)
    _check_resource("GPU", "rollout.gpus_per_worker", rollout.workers * rollout.gpus_per_worker)


def _probe(address: str) -> None:
    """Ray waits for minutes for a cluster that is not there."""
    host, _, port = address.rpartition(":")
    if not (host and port.isdecimal()) or "/" in host:
        return  # "auto" and the like: nothing to knock at
    try:
        socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS).close()
    except OSError as error:
        raise SettingsError(f"RAY_ADDRESS: no cluster answers at {address} ({error}); start one, or unset it") from None


def _check_resource(name: str, key: str, wanted: float) -> None:
    available = ray.cluster_resources().get(name, 0)
    if wanted > available:
        ray.shutdown()
        raise SettingsError(f"{key}: the workers want {wanted:g} {name}s, the cluster has {available:g}")
