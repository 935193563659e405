"""Calls of other commands as Ray's tasks, for `executor.RayExecutor`."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial

import ray
from ray.exceptions import WorkerCrashedError

from busso.command.settings.checks import SettingsError
from busso.train.dqn.rollout.ray.connect import amounts
from busso.train.dqn.rollout.ray.messages import Order
from busso.train.dqn.rollout.ray.pool import DEATHS_IN_A_ROW, reason_of


def call(pickled: bytes) -> bytes:
    """The value of a pickled function and its arguments, and None; or None, and the exception that it raised."""
    function, arguments = pickle.loads(pickled)
    try:
        return pickle.dumps((function(*arguments), None))
    except Exception as error:
        return pickle.dumps((None, error))


class TaskPool:
    """As many tasks at a time as the cluster has CPUs, also those of a node that joins later.

    Ray runs the task of a process or a node that dies again. All methods are for one thread, which also takes the
    events that Ray's threads hand to `put`.
    """

    look_seconds = 2.0

    def __init__(self, order: Order, tell: Callable[..., None], put: Callable[[Callable[[], None]], None]) -> None:
        self._order, self._tell, self._put = order, tell, put
        self._call = ray.remote(call).options(num_cpus=1, max_retries=DEATHS_IN_A_ROW, scheduling_strategy="SPREAD")
        self._looked, self._told = float("-inf"), 0

    def describe(self) -> str:
        """One line on who works."""
        return "ray: a task for every CPU"

    def look_after_workers(self) -> None:
        """Tell how many tasks can run, when that has changed."""
        if time.monotonic() - self._looked < self.look_seconds:
            return
        self._looked, cpus = time.monotonic(), max(1, int(amounts()["CPU"]))
        if cpus != self._told:
            self._told = cpus
            self._tell("workers", cpus)

    def submit(self, number: int, pickled: bytes) -> None:
        """Have a call made as soon as a CPU is free; its answer bears the number."""
        future = self._call.remote(pickled).future()
        future.add_done_callback(lambda done: self._put(partial(self._answered, number, done)))

    def _answered(self, number: int, future: Future[bytes]) -> None:
        try:
            self._tell("answer", number, future.result())
        except WorkerCrashedError as error:  # any other error of Ray ends the work
            problem = f"processes die one after another ({reason_of(error)})"
            raise SettingsError(self._order.asked, problem, f"try {self._order.instead}") from None
