"""Actors that answer units, for `units.RayUnits`: who works on which unit, and who takes a lost one."""

from __future__ import annotations

import pickle
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Protocol

import ray
from ray.exceptions import RayActorError

from command.settings.checks import SettingsError
from train.dqn.rollout.ray.cluster.connect import amounts
from train.dqn.rollout.ray.messages import Order
from train.dqn.rollout.ray.pool import DEATHS_IN_A_ROW, reason_of

LOOK_SECONDS = 2.0  # between two looks for nodes that have joined


class Listener(Protocol):
    """Hears from the pool what comes."""

    def answer(self, answer: bytes) -> None:
        """A unit is answered."""

    def workers(self, ready: int) -> None:
        """There are so many actors; one that has not started takes a unit, too."""


class UnitActor:
    """What `make()` gives, called with one unit after the other. Both come pickled, so that Ray need not know them."""

    def __init__(self, make: bytes) -> None:
        self._answer: Callable[[Any], Any] = pickle.loads(make)()

    def answer(self, unit: bytes) -> bytes:
        """The answer to a unit, pickled."""
        return pickle.dumps(self._answer(pickle.loads(unit)))


class UnitPool:
    """One actor for every CPU of the cluster that `connect` joined, and at least one.

    It starts when there is a CPU for it, also one of a node that joins later. The unit of an actor that dies is given
    to another. All methods are for one thread, which also takes the events that Ray's threads hand to `put`.
    """

    look_seconds = LOOK_SECONDS

    def __init__(self, order: Order, listener: Listener, put: Callable[[Callable[[], None]], None]) -> None:
        self._make, self._listener, self._put = order.settings, listener, put
        self._class = ray.remote(UnitActor).options(num_cpus=1, scheduling_strategy="SPREAD")
        self._idle: list[Any] = []
        self._busy = 0
        self._waiting: deque[bytes] = deque()
        self._deaths = 0  # since the last answer
        self._asked, self._instead = order.asked, order.instead
        self._looked, self._told = float("-inf"), 0

    def describe(self) -> str:
        """One line on who works."""
        return "ray: an actor for every CPU"

    def look_after_workers(self) -> None:
        """An actor for every CPU there is now and then, and a unit for every actor that has none."""
        if time.monotonic() - self._looked >= LOOK_SECONDS:
            self._looked = time.monotonic()
            missing = max(1, int(amounts()["CPU"])) - self._actors
            self._idle += [self._class.remote(self._make) for _ in range(missing)]
        if self._told != self._actors:
            self._told = self._actors
            self._listener.workers(self._actors)
        while self._waiting and self._idle:
            actor, unit = self._idle.pop(), self._waiting.popleft()
            self._busy += 1
            answered = partial(self._answered, actor, unit)
            future = actor.answer.remote(unit).future()
            future.add_done_callback(lambda done, answered=answered: self._put(partial(answered, done)))

    @property
    def _actors(self) -> int:
        return len(self._idle) + self._busy

    def submit(self, request: tuple[bytes]) -> None:
        """Have a unit worked on as soon as an actor is free."""
        self._waiting.extend(request)

    def _answered(self, actor: Any, unit: bytes, future: Future[bytes]) -> None:
        self._busy -= 1
        try:
            answer = future.result()
        except RayActorError as error:  # any other error of Ray ends the work
            self._deaths += 1
            if self._deaths > DEATHS_IN_A_ROW:
                problem = f"actors die one after another ({reason_of(error)})"
                raise SettingsError(self._asked, problem, f"try {self._instead}") from None
            self._waiting.appendleft(unit)
            self._looked = float("-inf")  # another takes its place at once
            return
        self._deaths = 0
        self._idle.append(actor)
        self._listener.answer(answer)
