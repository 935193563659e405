"""The process that speaks Ray: between the learner, at the other end of a channel, and the workers.

In place of a learner, another command may have units of its work done.
"""

from __future__ import annotations

import os
import queue
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import ray
from ray.exceptions import RayError, RayTaskError

from command.settings.checks import SettingsError
from train.dqn.rollout.ray.cluster import private
from train.dqn.rollout.ray.cluster.connect import NotStartedError, connect, describe_nodes
from train.dqn.rollout.ray.messages import Arrays, Order, Slot
from train.dqn.rollout.ray.pool import WorkerPool, reason_of
from train.dqn.rollout.ray.supervisor import EXIT_LOST, ignore_signals
from train.dqn.rollout.ray.unit_pool import UnitPool
from train.dqn.rollout.ray.watch import Watch

ALIVE_SECONDS = 1.0  # between two signs of life


def serve(channel: int, slots: list[int]) -> NoReturn:
    """Do what the order says until the other end of the channel is closed, and end this process."""
    link = Link(Connection(channel))
    broker = Broker(link, [Slot(file) for file in slots])
    try:
        broker.run()
    except SettingsError as error:
        link.tell("failed", "setting", error.args, error.exit_code)
    except NotStartedError as error:
        lost(link, str(error), "start")
    except RayTaskError as error:
        link.tell("failed", "error", str(error), 1)  # of ours in an actor, with its own traceback
    except (RayError, ConnectionError) as error:
        lost(link, reason_of(error))
    except Exception:  # whatever it is, the learner shall say it
        link.tell("failed", "error", traceback.format_exc(), 1)
    if os.environ.get("RAY_ADDRESS"):
        ray.shutdown()  # which ends the actors; what is our own the keeper ends, more quickly than Ray
    os._exit(0)


def lost(link: Link, reason: str, what: str = "lost") -> NoReturn:
    """Say so and end at once: without its cluster Ray would try for a minute to end in order."""
    if not os.environ.get("RAY_ADDRESS"):
        private.say_last_words()
    link.tell("failed", what, reason, 1)
    os._exit(EXIT_LOST)


class Link:
    """The channel, for several threads."""

    def __init__(self, channel: Connection) -> None:
        self.hear = channel.recv
        self._channel = channel
        self._lock = threading.Lock()

    def tell(self, *message: Any) -> None:
        """Send a message, if there is still anybody to hear it."""
        with self._lock, suppress(OSError):
            self._channel.send(message)


class Broker:
    """What the learner says, and what comes of Ray, are events, which one thread takes in turn."""

    def __init__(self, link: Link, slots: list[Slot]) -> None:
        self._link, self._slots = link, slots
        self._free = list(range(len(slots)))
        self._waiting: deque[tuple[dict[str, Any], Arrays]] = deque()  # for a free slot
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._started = self._ended = False
        self._said = 0.0

    def run(self) -> None:
        """Until the learner closes its end."""
        order: Order = self._link.hear()
        threading.Thread(target=self._listen, daemon=True).start()
        dashboard = connect(order.rollout, order.asked, order.instead)
        ignore_signals()  # again: Ray has put handlers of its own in their place
        Watch(partial(lost, self._link)).start()
        if order.describe_nodes:
            self._link.tell("hello", "\n".join(describe_nodes()))
            return
        pool = UnitPool if order.units else WorkerPool
        self._pool: Any = pool(order, self, self._events.put)  # it has the methods for the messages that come
        self._started = True
        shown = f"; Ray's dashboard: {dashboard}" if order.rollout.dashboard and dashboard else ""
        self._link.tell("hello", self._pool.describe() + shown)
        while not self._ended:
            self._pool.look_after_workers()
            with suppress(queue.Empty):
                self._events.get(timeout=self._pool.look_seconds)()
            if time.monotonic() - self._said > ALIVE_SECONDS:
                self._said = time.monotonic()
                self._link.tell("alive")

    # ------------------------------------------------------------------ from the learner

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                name, *rest = self._link.hear()
                self._events.put(partial(getattr(self, f"_on_{name}"), *rest))
        if not self._started:
            os._exit(0)  # whatever Ray is doing; the keeper sees to the rest
        self._events.put(self._end)

    def _end(self) -> None:
        self._ended = True

    def _on_publish(self, version: int, weights: dict[str, Any]) -> None:
        self._pool.publish(version, weights)

    def _on_enrol(self, numbers: list[int], new: dict[int, dict[str, Any]]) -> None:
        self._pool.enrol(numbers, new)

    def _on_submit(self, *request: Any) -> None:
        self._pool.submit(request)

    def _on_evaluate(self, tag: int, weights: dict[str, Any]) -> None:
        self._pool.evaluate(tag, weights)

    def _on_free(self, slot: int) -> None:
        self._free.append(slot)
        self._send_rollouts()

    # ------------------------------------------------------------------ from the pool

    def rollout(self, about: dict[str, Any], arrays: Arrays) -> None:
        """See `pool.Listener`."""
        self._waiting.append((about, arrays))
        self._send_rollouts()

    def _send_rollouts(self) -> None:
        while self._free and self._waiting:
            slot, (about, arrays) = self._free.pop(), self._waiting.popleft()
            self._link.tell("rollout", about, slot, self._slots[slot].write(arrays))

    def evaluated(self, tag: int, duels: bytes) -> None:
        """See `pool.Listener`."""
        self._link.tell("evaluated", tag, duels)

    def answer(self, answer: bytes) -> None:
        """See `unit_pool.Listener`."""
        self._link.tell("answer", answer)

    def workers(self, ready: int) -> None:
        """See `pool.Listener`."""
        self._link.tell("workers", ready)

    def warning(self, text: str) -> None:
        """See `pool.Listener`."""
        self._link.tell("warning", text)
