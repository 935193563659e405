"""Driver process: uses Ray on behalf of the learner, which it talks to over a channel."""

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

from busso.cards.base.errors import UserError
from busso.command.settings.checks import SettingsError
from busso.train.dqn.rollout.ray import private
from busso.train.dqn.rollout.ray.connect import NotStartedError, connect, describe_nodes
from busso.train.dqn.rollout.ray.messages import Arrays, Order, Slot
from busso.train.dqn.rollout.ray.pool import WorkerPool, reason_of
from busso.train.dqn.rollout.request import Rollout
from busso.train.run.signals import ignore_signals

ALIVE_SECONDS = 1.0  # between two "alive" messages


def serve(descriptor: int, slots: list[int]) -> NoReturn:
    """Carry out the order until the other end of the channel is closed, then end this process."""
    channel = Connection(descriptor)
    try:
        Driver(channel, [Slot(file) for file in slots]).run()
    except SettingsError as error:
        tell(channel, "failed", "setting", error.args, error.exit_code)
    except NotStartedError as error:
        lost(channel, str(error), "start")
    except RayTaskError as error:
        if isinstance(cause := error.cause, UserError):  # for example an error in the user's own code
            tell(channel, "failed", "setting", cause.args, cause.exit_code)
        else:
            tell(channel, "failed", "error", str(error), 1)  # our own error in an actor, with its traceback
    except (RayError, ConnectionError) as error:
        lost(channel, reason_of(error))
    except Exception:  # the learner reports any other error
        tell(channel, "failed", "error", traceback.format_exc(), 1)
    if os.environ.get("RAY_ADDRESS"):
        ray.shutdown()  # ends the actors; the supervisor ends our own processes, faster than Ray
    os._exit(0)


def lost(channel: Connection, reason: str, what: str = "lost") -> NoReturn:
    """Report the loss and exit immediately: without its cluster Ray would try to shut down for a minute."""
    if not os.environ.get("RAY_ADDRESS"):
        private.print_ray_logs()
    tell(channel, "failed", what, reason, 1)
    os._exit(private.EXIT_LOST)


def tell(channel: Connection, *message: Any) -> None:
    """Send a message, unless the other end is closed."""
    with suppress(OSError):
        channel.send(message)


class Driver:
    """Event loop of the driver: one thread handles the learner's messages and Ray's answers in turn.

    All messages but "free" are methods of the pool.
    """

    def __init__(self, channel: Connection, slots: list[Slot]) -> None:
        self._channel, self._slots = channel, slots
        self._free = list(range(len(slots)))
        self._waiting: deque[tuple[Rollout, Arrays]] = deque()  # waiting for a free slot
        self._events: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._pool: WorkerPool | None = None
        self._ended = False

    def run(self) -> None:
        """Handle events until the learner closes its end of the channel."""
        order: Order = self._channel.recv()
        threading.Thread(target=self._listen, daemon=True).start()
        connect(order.rollout)
        ignore_signals()  # again, because Ray installs its own handlers
        if order.describe_nodes:
            tell(self._channel, "hello", "\n".join(describe_nodes()))
            return
        pool = self._pool = WorkerPool(order, self._tell, self._events.put)
        tell(self._channel, "hello", pool.describe())
        said = 0.0
        while not self._ended:
            pool.look_after_workers()
            with suppress(queue.Empty):
                self._events.get(timeout=pool.look_seconds)()
            if time.monotonic() - said > ALIVE_SECONDS:
                said = time.monotonic()
                tell(self._channel, "alive")

    def _listen(self) -> None:
        with suppress(EOFError, OSError):
            while True:
                self._events.put(partial(self._do, *self._channel.recv()))
        if self._pool is None:
            os._exit(0)  # whatever Ray is doing; the supervisor cleans up
        self._events.put(self._end)

    def _end(self) -> None:
        self._ended = True

    def _do(self, name: str, *message: Any) -> None:
        if name == "free":
            self._free += message
            self._send_rollouts()
        else:
            getattr(self._pool, name)(*message)

    def _tell(self, name: str, *message: Any) -> None:
        """Send the pool's message to the learner, with a rollout's arrays in a shared slot."""
        if name == "rollout":
            rollout, arrays = message
            self._waiting.append((rollout, arrays))
            self._send_rollouts()
        else:
            tell(self._channel, name, *message)

    def _send_rollouts(self) -> None:
        while self._free and self._waiting:
            slot, (rollout, arrays) = self._free.pop(), self._waiting.popleft()
            tell(self._channel, "rollout", rollout, slot, self._slots[slot].write(arrays))
