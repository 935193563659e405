"""Any work over the CPUs of a Ray cluster: units go in, answers come out as they are done.

Unlike rollouts, which the learner leaves to a process of its own, this speaks Ray in the process that calls it: Ray may
end that process, so it is for work that is kept as it comes and can be gone on with.
"""

from __future__ import annotations

import pickle
import signal
import threading
from collections.abc import Callable
from typing import Any

import ray
from ray.exceptions import RayActorError, RayError

from command.errors import UserError
from train.dqn.cluster.connect import amounts, connect
from train.dqn.cluster.pool import DEATHS_IN_A_ROW
from train.settings.dqn import RolloutSettings

LOOK_SECONDS = 2.0  # between two looks for nodes that have joined


class ClusterLostError(UserError):
    """The cluster does not play any more; the message says why."""


class UnitActor:
    """What `make()` gives, called with one unit after the other. Both come pickled, so that Ray need not know them."""

    def __init__(self, make: bytes) -> None:
        self._answer: Callable[[Any], Any] = pickle.loads(make)()

    def answer(self, unit: bytes) -> bytes:
        """The answer to a unit, pickled."""
        return pickle.dumps(self._answer(pickle.loads(unit)))


class RayUnits:
    """One actor for every CPU of the cluster of RAY_ADDRESS, or of one of this process alone.

    `make` gives, in each actor, a function `unit -> answer` that raises nothing; what it is made of must be importable
    there. Nodes that join later play, too; the unit of an actor that dies is given to another. `asked` is how the user
    asked for Ray, and `instead` what else there is, for messages. Raises SettingsError when there is no cluster.
    """

    def __init__(self, make: Callable[[], Callable[[Any], Any]], asked: str, instead: str) -> None:
        self._handler = signal.getsignal(signal.SIGTERM)
        connect(RolloutSettings(), asked, instead)
        self._asked, self._make = asked, pickle.dumps(make)
        self._class = ray.remote(UnitActor).options(num_cpus=1, scheduling_strategy="SPREAD")
        self._idle: list[Any] = []
        self._busy: dict[Any, tuple[Any, Any]] = {}  # by reference of what is to come: actor, unit
        self._again: list[Any] = []  # units of actors that died
        self._deaths = 0  # since the last answer

    def free(self) -> int:
        """How many more units can be worked on now."""
        self._grow()
        return max(0, len(self._idle) - len(self._again))

    def submit(self, unit: Any) -> None:
        """Have a unit worked on; `free` must have said that there is room."""
        actor = self._idle.pop()
        self._busy[actor.answer.remote(pickle.dumps(unit))] = actor, unit

    def ready(self) -> list[Any]:
        """Wait for answers, in the order in which they are done. Raises ClusterLostError."""
        answers: list[Any] = []
        while not answers:
            self._grow()
            while self._again and self._idle:
                self.submit(self._again.pop())
            done, _ = ray.wait(list(self._busy), timeout=LOOK_SECONDS) if self._busy else ([], [])
            for reference in done:
                answers += self._taken(reference)
        return answers

    def close(self) -> None:
        """End the actors, and the cluster if it is one of this process alone."""
        ray.shutdown()
        if threading.current_thread() is threading.main_thread():  # in others Ray sets none
            signal.signal(signal.SIGTERM, self._handler)

    def _taken(self, reference: Any) -> list[Any]:
        actor, unit = self._busy.pop(reference)
        try:
            answer = pickle.loads(ray.get(reference))
        except RayActorError as error:
            self._again.append(unit)
            self._deaths += 1
            if self._deaths > DEATHS_IN_A_ROW:
                raise self._lost(error) from None
            return []
        except RayError as error:
            raise self._lost(error) from None
        self._deaths = 0
        self._idle.append(actor)
        return [answer]

    def _grow(self) -> None:
        """An actor for every CPU, and at least one: it starts when there is a CPU for it."""
        try:
            wanted = max(1, int(amounts()["CPU"]))
        except RayError as error:
            raise self._lost(error) from None
        for _ in range(wanted - len(self._idle) - len(self._busy)):
            self._idle.append(self._class.remote(self._make))

    def _lost(self, error: Exception) -> ClusterLostError:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return ClusterLostError(self._asked, f"the cluster is of no use any more: {reason}")
