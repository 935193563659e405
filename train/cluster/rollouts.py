"""Rollouts by Ray actors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import ray
from ray.exceptions import RayError, RayTaskError

from cards.duplicate import Duel
from train.checks import SettingsError
from train.cluster.actors import HEALTH, EvaluatorActor, WorkerActor
from train.cluster.connect import alive_nodes, amounts, connect, reserve
from train.config import TrainSettings
from train.rollout import Rollout, RolloutsLostError, Ticket, Weights

log = logging.getLogger("train")
P = ParamSpec("P")
T = TypeVar("T")

WAIT_SECONDS = 1.0
LOOK_SECONDS = 0.5  # between two looks at the workers
SILENT_SECONDS = 5.0  # a worker that owes an answer for so long gets no new weights, which would only wait for it
START_SECONDS = 300.0  # that a worker may take to start: many at once read PyTorch from one slow disk
DEATHS_IN_A_ROW = 5  # more than there are workers, of actors that did nothing, end the run


def _or_lost(method: Callable[P, T]) -> Callable[P, T]:
    """Whatever Ray raises because it is not there any more becomes one error."""

    @wraps(method)
    def guarded(*arguments: P.args, **more: P.kwargs) -> T:
        try:
            return method(*arguments, **more)
        except RayTaskError:
            raise  # an error of ours in an actor
        except (RayError, ConnectionError) as error:
            raise RolloutsLostError(
                f"rollout=ray: the cluster is gone ({_reason(error)}); the same command goes on from the checkpoint"
            ) from None

    return guarded


@dataclass(eq=False)
class _Member:
    """An actor as this process knows it."""

    actor: Any
    answer: Any  # to the last question, perhaps still to come
    heard: float = field(default_factory=time.monotonic)  # when it last got on with something, or had nothing to do
    asked: float = field(default_factory=time.monotonic)
    rounds: int = -1
    ready: bool = False  # has answered once
    useful: bool = False  # has done something


class RayRollouts:
    """Workers on this machine or on the cluster of RAY_ADDRESS, each with `in_flight` tickets.

    A worker that dies, or does not get on for `rollout.heartbeat_seconds`, is replaced, and its tickets are played
    again with other games. With `rollout.workers=null` workers come and go with the CPUs of the cluster. See
    `train.rollout.Rollouts` for the methods.
    """

    def __init__(self, settings: TrainSettings) -> None:
        self._settings = settings
        connect(settings.rollout)
        reserve(settings.learner.threads, self._wanted())
        remote = ray.remote(concurrency_groups={HEALTH: 1})
        gpus = settings.rollout.gpus_per_worker
        self._worker_class = remote(WorkerActor).options(num_cpus=1, num_gpus=gpus, scheduling_strategy="SPREAD")
        self._evaluator_class = remote(EvaluatorActor).options(num_cpus=0)
        self._version, self._weights = -1, None
        self._workers = [self._start(self._worker_class) for _ in range(self._wanted())]
        self._evaluator = self._start(self._evaluator_class)
        self._in_flight: dict[Any, tuple[_Member, Ticket]] = {}
        self._lost: list[Ticket] = []  # to be played again
        self._evaluations: dict[Any, tuple[int, Weights]] = {}
        self._fruitless = 0  # actors that died without having done anything, since one did
        self._looked = time.monotonic()

    def _start(self, actor_class: Any) -> _Member:
        actor = actor_class.remote(self._settings)
        return _Member(actor, actor.beat.remote())

    def _wanted(self) -> int:
        """How many workers there should be: as many as set, or one for every CPU but the learner's."""
        rollout = self._settings.rollout
        if rollout.workers is not None:
            return rollout.workers
        has = amounts()
        wanted = int(has["CPU"]) - self._settings.learner.threads
        if rollout.gpus_per_worker:
            wanted = min(wanted, int(has["GPU"] / rollout.gpus_per_worker))
        return max(1, wanted)

    @_or_lost
    def publish(self, version: int, weights: Weights) -> None:
        """Put the weights into the object store once. Every worker gets the reference, for the batch it starts next."""
        self._version, self._weights = version, ray.put(weights)
        self._look_after_workers()
        for worker in self._workers:
            if worker.ready and time.monotonic() - worker.asked < SILENT_SECONDS:
                worker.actor.take.remote(self._version, self._weights)

    def workers(self) -> int:
        """Workers that have started."""
        return sum(worker.ready for worker in self._workers)

    def room(self) -> int:
        """Tickets that still fit, `in_flight` for each worker that has started."""
        return self._settings.rollout.in_flight * self.workers() - len(self._in_flight) - len(self._lost)

    @_or_lost
    def submit(self, ticket: Ticket) -> None:
        """Give a ticket to the worker with the fewest; it waits if the last of them has just died."""
        load = {worker: 0 for worker in self._workers if worker.ready}
        if not load:
            self._lost.append(ticket)
            return
        for worker, _ in self._in_flight.values():
            load[worker] += 1
        worker = min(load, key=lambda each: load[each])
        reference = worker.actor.play.remote(ticket, self._version, self._weights)
        self._in_flight[reference] = (worker, ticket)

    @_or_lost
    def ready(self, wait: bool) -> list[Rollout]:
        """Rollouts in the order in which they were done."""
        self._look_after_workers()
        if not self._in_flight:
            time.sleep(LOOK_SECONDS / 10 if wait else 0)  # until a worker has started
            return []
        timeout = WAIT_SECONDS if wait else 0
        references, _ = ray.wait(list(self._in_flight), num_returns=1, timeout=timeout, fetch_local=True)
        return [rollout for reference in references for rollout in self._fetched(reference)]

    def _fetched(self, reference: Any) -> list[Rollout]:
        worker, ticket = self._in_flight.pop(reference)
        try:
            rollout = ray.get(reference)
        except RayTaskError:
            raise  # an error of ours, which would come again
        except RayError as error:  # the worker, its node, or what it left behind is gone
            self._lost.append(ticket)
            self._replace(worker, _reason(error))
            return []
        self._fruitless, worker.useful = 0, True
        return [rollout]

    # ------------------------------------------------------------------ who is alive

    def _look_after_workers(self) -> None:
        """Hear from everybody now and then, take in new nodes, and hand lost tickets to those who are left."""
        now = time.monotonic()
        if now - self._looked >= LOOK_SECONDS or not self.workers():
            members = [*self._workers, self._evaluator]
            if now - self._looked > self._settings.rollout.heartbeat_seconds / 2:
                for member in members:  # this process was held up itself, and did not ask
                    member.heard = now
            self._looked = now
            for member in members:
                self._hear(member)
            self._fit_to_cluster()
        while self._lost and self.workers():
            lost = self._lost.pop(0)
            self.submit(replace(lost, attempt=lost.attempt + 1))

    def _hear(self, member: _Member) -> None:
        """Take note of the member's answer and ask again; replace it if it is dead or has not got on for too long."""
        now, limit = time.monotonic(), self._settings.rollout.heartbeat_seconds
        if ray.wait([member.answer], timeout=0)[0]:
            try:
                rounds = ray.get(member.answer)
            except RayTaskError:
                raise
            except RayError as error:
                self._replace(member, _reason(error))
                return
            if rounds != member.rounds or not self._tickets_of(member):
                member.heard, member.rounds = now, rounds
            member.ready, member.asked = True, now
            member.answer = member.actor.beat.remote()
        silent = now - member.heard
        if member.ready and silent > limit:
            self._replace(member, f"no progress for {limit:g} s (rollout.heartbeat_seconds)")
        elif not member.ready and silent > START_SECONDS:
            self._give_up_starting(member, silent)

    def _give_up_starting(self, member: _Member, seconds: float) -> None:
        """It hangs, or it waits for a node; with nobody else there the run would wait for ever."""
        if member is not self._evaluator and not self.workers():
            has = ", ".join(f"{amount:g} {name}s" for name, amount in amounts().items())
            raise SettingsError(f"rollout=ray: no worker has started in {seconds:.0f} s; the cluster has {has}")
        self._replace(member, f"not started in {seconds:.0f} s")

    def _tickets_of(self, member: _Member) -> list[Ticket]:
        return [ticket for worker, ticket in self._in_flight.values() if worker is member]

    def _fit_to_cluster(self) -> None:
        """As many workers as there should be; those that wait for a node that went away are given up."""
        excess = len(self._workers) - self._wanted()
        for worker in [worker for worker in self._workers if not worker.ready][: max(0, excess)]:
            self._workers.remove(worker)
            ray.kill(worker.actor)
        self._workers += [self._start(self._worker_class) for _ in range(-excess)]

    def _replace(self, member: _Member, reason: str) -> None:
        """Give a member up: another takes its place, its tickets go to whoever has room."""
        ray.kill(member.actor)
        self._count_death(member, reason)
        if member is self._evaluator:
            self._evaluator = self._start(self._evaluator_class)
            evaluations, self._evaluations = self._evaluations, {}
            for tag, weights in evaluations.values():
                self.evaluate(tag, weights)
        elif member in self._workers:
            self._workers.remove(member)
            self._lost += self._tickets_of(member)
            self._in_flight = {r: (w, t) for r, (w, t) in self._in_flight.items() if w is not member}
            self._fit_to_cluster()

    def _count_death(self, member: _Member, reason: str) -> None:
        self._fruitless += not member.useful
        if self._fruitless >= DEATHS_IN_A_ROW + len(self._workers):
            raise SettingsError(f"rollout=ray: actors die one after another ({reason}); try rollout=local to see why")
        who = "evaluator" if member is self._evaluator else "worker"
        log.warning("a Ray %s is replaced: %s", who, reason)

    # ------------------------------------------------------------------ evaluation

    @_or_lost
    def evaluate(self, tag: int, weights: Weights) -> None:
        """Start an evaluation beside the workers."""
        self._evaluations[self._evaluator.actor.duels.remote(weights)] = (tag, weights)

    @_or_lost
    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        """Evaluations in the order in which they were done; if the evaluator dies they start again with another."""
        results: list[tuple[int, dict[str, Duel]]] = []
        while self._evaluations:
            timeout = WAIT_SECONDS if wait else 0
            done, _ = ray.wait(list(self._evaluations), num_returns=1, timeout=timeout)
            results += [result for reference in done for result in self._result(reference)]
            if not done and not wait:
                break
            self._look_after_workers()
        return results

    def _result(self, reference: Any) -> list[tuple[int, dict[str, Duel]]]:
        try:
            result = ray.get(reference)
        except RayTaskError:
            raise
        except RayError as error:
            self._replace(self._evaluator, _reason(error))
            return []
        tag, _ = self._evaluations.pop(reference)
        self._fruitless, self._evaluator.useful = 0, True
        return [(tag, result)]

    def describe(self) -> str:
        """One line on who plays."""
        rollout = self._settings.rollout
        nodes = len(alive_nodes())
        return (
            f"ray: {len(self._workers)} workers on {nodes} node(s), {rollout.in_flight} batches of {rollout.batch} each"
        )

    def close(self) -> None:
        """End the actors; a cluster that was started here goes with them."""
        ray.shutdown()


def _reason(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
