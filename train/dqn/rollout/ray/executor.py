"""Any work over the CPUs of a Ray cluster, as a `concurrent.futures.Executor`. No Ray here.

As with rollouts a separate process speaks Ray, since Ray may end that process at any moment.
"""

from __future__ import annotations

import itertools
import os
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any, TypeVar

from busso.command.errors import UserError
from busso.train.dqn.rollout.ray.messages import Order
from busso.train.dqn.rollout.ray.process import RayProcess
from busso.train.run.signals import EXIT_REQUEUE
from busso.train.settings.dqn import RolloutSettings

T = TypeVar("T")


class ClusterLostError(UserError):
    """The cluster does not play any more, or did not start; the message says why."""

    exit_code = EXIT_REQUEUE


class RayExecutor(Executor):
    """Runs calls on every CPU of the cluster of RAY_ADDRESS, or of one of this process alone.

    Functions and arguments must be importable there. Nodes that join later work, too; the call of a process that dies
    is made again. `asked` is how the user asked for Ray, `instead` what else there is, and `again` what to do after a
    loss, for messages; what Ray itself says goes to the file `says`. When the cluster is lost all futures raise
    ClusterLostError. Raises UserError when there is no cluster.
    """

    def __init__(self, asked: str, instead: str, again: str = "try it again", says: Path = Path(os.devnull)) -> None:
        self._changed = threading.Condition()  # of what the process's thread writes
        self.workers = 0  # calls that run at the same time
        self._numbers = itertools.count()
        self._calls: dict[int, Future[Any]] = {}
        rollout = RolloutSettings()
        order = Order(rollout, 0, b"", tasks=True, asked=asked, instead=instead, again=again)
        self._process = RayProcess(order, says, rollout.heartbeat_seconds, self._hear, ClusterLostError)
        try:
            with self._changed:
                self._changed.wait_for(lambda: self.workers or self._process.failure)
            if self._process.failure is not None:
                raise self._process.failure
        except BaseException:
            self.shutdown()
            raise

    def submit(self, function: Callable[..., T], /, *arguments: Any) -> Future[T]:  # type: ignore[override]
        """Have `function(*arguments)` called on the cluster."""
        number, future = next(self._numbers), Future[T]()
        with self._changed:
            if self._process.failure is not None:
                raise self._process.failure
            self._calls[number] = future
        self._process.say("submit", number, pickle.dumps((function, arguments)))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End all calls, and the cluster if it is one of this process alone."""
        self._process.close()

    def _hear(self, name: str, *message: Any) -> None:
        with self._changed:
            if name == "workers":
                (self.workers,) = message
            elif name == "answer":
                number, answer = message
                value, error = pickle.loads(answer)
                future = self._calls.pop(number)
                future.set_result(value) if error is None else future.set_exception(error)
            elif name == "failed":
                while self._calls:
                    self._calls.popitem()[1].set_exception(self._process.failure)
            self._changed.notify_all()
