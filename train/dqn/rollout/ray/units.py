"""Any work over the CPUs of a Ray cluster: units go in, answers come out as they are done. No Ray here.

As with rollouts a process of its own speaks Ray, which may end that process at any moment.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from command.errors import UserError
from train.dqn.rollout.ray.cluster.process import RayProcess
from train.dqn.rollout.ray.messages import Order
from train.run.signals import EXIT_REQUEUE
from train.settings.dqn import RolloutSettings

_WAIT_SECONDS = 1.0


class ClusterLostError(UserError):
    """The cluster does not play any more, or did not start; the message says why."""

    exit_code = EXIT_REQUEUE


class RayUnits:
    """One actor for every CPU of the cluster of RAY_ADDRESS, or of one of this process alone.

    `make` gives, in each actor, a function `unit -> answer` that raises nothing; what it is made of must be importable
    there. Nodes that join later play, too; the unit of an actor that dies is given to another. `asked` is how the user
    asked for Ray, `instead` what else there is, and `again` what to do after a loss, for messages; what Ray itself
    says goes to the file `says`. Raises UserError when there is no cluster.
    """

    def __init__(
        self,
        make: Callable[[], Callable[[Any], Any]],
        asked: str,
        instead: str,
        again: str = "try it again",
        says: Path = Path(os.devnull),
    ) -> None:
        self._changed = threading.Condition()  # of what the process's thread writes
        self._workers = 0
        self._answers: deque[Any] = deque()
        self._out = 0  # units
        rollout = RolloutSettings()
        made = pickle.dumps(make)
        order = Order(rollout, 0, "", made, units=True, asked=asked, instead=instead, again=again)
        self._process = RayProcess(order, says, rollout.heartbeat_seconds, self._hear, ClusterLostError)
        try:
            self._wait(lambda: bool(self._workers))
        except BaseException:
            self.close()
            raise

    def free(self) -> int:
        """How many more units can be worked on now."""
        return max(0, self._workers - self._out)

    def submit(self, unit: Any) -> None:
        """Have a unit worked on; `free` must have said that there is room."""
        self._out += 1
        self._process.say("submit", pickle.dumps(unit))

    def ready(self) -> list[Any]:
        """Wait for answers, in the order in which they are done. Raises ClusterLostError."""
        self._wait(lambda: bool(self._answers))
        answers = [self._answers.popleft() for _ in range(len(self._answers))]
        self._out -= len(answers)
        return answers

    def close(self) -> None:
        """End the actors, and the cluster if it is one of this process alone."""
        self._process.close()

    def _hear(self, name: str, *message: Any) -> None:
        with self._changed:
            if name == "workers":
                (self._workers,) = message
            elif name == "answer":
                self._answers.append(pickle.loads(*message))
            self._changed.notify_all()

    def _wait(self, done: Callable[[], bool]) -> None:
        """Until it is done. Raises what ends the process that speaks Ray."""
        with self._changed:
            while not done():
                if self._process.failure is not None:
                    raise self._process.failure
                self._changed.wait(_WAIT_SECONDS)
