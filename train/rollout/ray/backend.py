"""RolloutBackend of Ray workers, in the learner's process, and its handle of the Ray driver process. No Ray here."""

import importlib.util
import logging
import os
import pickle
import queue
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from busso.base.errors import UserError
from busso.base.system import shared_file
from busso.cards.duplicate import Duel
from busso.cards.play import Stop, never
from busso.command.settings.checks import SettingsError
from busso.train.rollout.backend import BackendLostError
from busso.train.rollout.ray import messages, private
from busso.train.rollout.ray.messages import ASKED, INSTEAD, Layout, Slot, WeightArrays
from busso.train.rollout.ray.supervisor import GRACE_SECONDS, KILL_SECONDS
from busso.train.rollout.request import Rollout, RolloutRequest, Weights
from busso.train.rollout.transitions import transitions_for
from busso.train.settings.dqn import TrainSettings

ROOT = Path(__file__).parents[4]  # the clone or site-packages, where the nodes find this package, too
_LOOK_SECONDS = 1.0
# Under `uv run` Ray would upload the working folder, up to 500 MB, which workers do not need.
_NO_UPLOAD = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
log = logging.getLogger("train")
WAIT_SECONDS = 1.0
_LOG = "ray.log"  # Ray's own output, in the run folder


class RayProcess:
    """Supervisor process and its child, the driver. `listen` starts a thread that passes messages to `hear`.

    When the process has ended, or was silent for `patience` seconds, `failure` is the error: BackendLostError if a
    retry may help. A cluster started here has a private folder, which is removed with it.
    """

    def __init__(self, order: messages.Order, says: Path, patience: float, hear: Callable[..., None]) -> None:
        if importlib.util.find_spec("ray") is None:
            raise SettingsError(ASKED, "ray is not installed", f"use {INSTEAD}")
        self.failure: Exception | None = None
        self._started = False
        self._says, self._patience, self._on_message = says, patience, hear
        self._see = "" if str(says) == os.devnull else f", see {says}"
        self._outbox: queue.SimpleQueue[messages.Command | messages.Order | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._start()
        self._outbox.put(order)

    def listen(self) -> None:
        """Start sending and receiving; `hear` must be ready."""
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._receive, self._send)]
        for thread in self._threads:
            thread.start()

    def _start(self) -> None:
        self._says.parent.mkdir(parents=True, exist_ok=True)
        self._folder = None if os.environ.get("RAY_ADDRESS") else private.make()
        told = private.environment(self._folder) if self._folder else {}
        mine, theirs = socket.socketpair()
        lifeline, self._lifeline = os.pipe()
        files = [shared_file() for _ in range(messages.SLOTS)]
        self.slots = [Slot(file) for file in files]
        inherited = [lifeline, theirs.fileno(), *files]
        path = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])
        try:
            with self._says.open("ab") as says:
                # In a new session, Ctrl-C and signals to the learner's process group do not reach it.
                self._supervisor = subprocess.Popen(
                    [
                        sys.executable,
                        "-m",
                        "busso.train.rollout.ray.supervisor",
                        str(self._folder or ""),
                        *map(str, inherited),
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=says,
                    stderr=says,
                    pass_fds=inherited,
                    start_new_session=True,
                    env={**os.environ, **_NO_UPLOAD, **told, "PYTHONPATH": path},
                )
        except BaseException:
            self._remove_folder()
            raise
        finally:
            os.close(lifeline)
            theirs.close()
        self._socket, self._files = mine, files
        self._channel = Connection(os.dup(mine.fileno()))

    def say(self, command: messages.Command) -> None:
        """Queue a command without waiting for the receiver."""
        self._outbox.put(command)

    def close(self) -> None:
        """End the process and everything that it started."""
        if self._lifeline < 0:
            return
        os.close(self._lifeline)
        self._lifeline = -1
        self._outbox.put(None)
        with suppress(OSError):  # on macOS, if the other end is closed
            self._socket.shutdown(socket.SHUT_RDWR)
        try:
            self._supervisor.wait(GRACE_SECONDS + KILL_SECONDS + 1)
        except subprocess.TimeoutExpired:
            self._supervisor.kill()
            self._supervisor.wait()
        self._remove_folder()  # a killed supervisor leaves it behind
        for thread in self._threads:
            thread.join()
        for file in self._files:
            os.close(file)
        self._socket.close()
        self._channel.close()

    def _remove_folder(self) -> None:
        if self._folder:
            private.remove(self._folder)

    # ------------------------------------------------------------------ threads

    def _send(self) -> None:
        try:
            while (message := self._outbox.get()) is not None:
                self._channel.send(message)
        except OSError:
            pass  # `_receive` gets the same error and reports it
        except Exception as error:  # no other process would report it
            self._fail(self._lost(f"cannot send a message: {error}"))

    def _receive(self) -> None:
        silent = 0.0
        try:
            while True:
                # Count polls rather than seconds: this process may have been stalled itself.
                if not self._channel.poll(_LOOK_SECONDS):
                    silent += _LOOK_SECONDS
                    if self._started and silent >= self._patience:
                        self._fail(self._lost(f"its process has not responded for {self._patience:g} s"))
                        return
                    continue
                silent = 0.0
                name, *rest = self._channel.recv()
                if name == "failed":
                    self._fail(self._named(*rest))
                    return
                self._started = self._started or name == "hello"
                self._on_message(name, *rest)
        except (EOFError, OSError):
            self._fail(self._ended())
        except Exception as error:  # otherwise the learner would wait forever
            self._fail(self._lost(f"cannot read a message: {error}"))

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self._on_message("failed")

    def _lost(self, reason: str) -> UserError:
        problem = f"the cluster was lost ({reason})"
        return BackendLostError(ASKED, problem, "the same command resumes from the checkpoint")

    def _not_started(self, reason: str) -> UserError:
        problem = f"Ray did not start: {reason}{self._see}"
        return BackendLostError(ASKED, problem, f"retry, or use {INSTEAD}")

    def _named(self, what: str, said: Any, code: int) -> Exception:
        if what == "lost":
            return self._lost(said)
        if what == "start":
            return self._not_started(said)
        if what == "setting":
            error = SettingsError(*said)
            error.exit_code = code
            return error
        return RuntimeError(said)

    def _ended(self) -> Exception:
        """Return the error for an end without a "failed" message: Ray kills attached processes without warning."""
        try:
            says = f"Ray terminated its process with exit code {self._supervisor.wait(GRACE_SECONDS + KILL_SECONDS)}"
        except subprocess.TimeoutExpired:
            says = "its process died"
        return self._lost(says + self._see) if self._started else self._not_started(says)


class RayBackend:
    """Workers on this machine or the cluster of RAY_ADDRESS, each with `in_flight` requests.

    For the methods see `busso.train.rollout.backend.RolloutBackend`; they wait for Ray only if asked to. If the
    cluster is lost, `ready` returns the remaining rollouts, then raises BackendLostError.
    """

    concurrent = True

    def __init__(self, settings: TrainSettings, describe_nodes: bool = False) -> None:
        """Start the Ray process; with `describe_nodes` only to describe the nodes of its cluster."""
        self._rollout, self._kind = settings.rollout, transitions_for(settings.target)
        # Wakes `_wait` after each message. Reading needs no lock: the receiving thread writes each of these fields in a
        # single operation, and only the trainer's thread removes from them.
        self._received = threading.Condition()
        self._description = ""
        self._workers = 0
        self._rollouts: deque[tuple[Rollout, int, Layout]] = deque()  # with the slot of the arrays
        self._evaluations: deque[tuple[int, dict[str, Duel]]] = deque()
        self._warnings: deque[str] = deque()
        self._out = 0  # requests in flight
        self._opponents = tuple(dict.fromkeys(settings.evaluation.opponents))
        self._under_way: dict[int, dict[str, Duel]] = {}  # evaluations by tag, with the duels that have ended
        self._published = 0.0
        order = messages.Order(settings.rollout, settings.learner.cpu_threads, pickle.dumps(settings), describe_nodes)
        says = Path(os.devnull) if describe_nodes else settings.folder / _LOG
        self._process = RayProcess(order, says, self._rollout.heartbeat_seconds, self._on_message)
        self._process.listen()

    def _on_message(self, name: str, *message: Any) -> None:
        """Handle a message from the Ray process, in the receiving thread."""
        with self._received:
            if name == "hello":
                (self._description,) = message
            elif name == "workers":
                (self._workers,) = message
            elif name == "warning":
                self._warnings += message
            elif name == "rollout":
                rollout, slot, layout = message
                self._rollouts.append((rollout, slot, layout))
            elif name == "evaluated":
                tag, duels = message
                found = self._under_way[tag]
                found |= pickle.loads(duels)
                if len(found) == len(self._opponents):
                    self._evaluations.append((tag, found))
            self._received.notify_all()

    def wants_weights(self) -> bool:
        return not self._published or time.monotonic() - self._published >= self._rollout.publish_ms / 1000

    def publish(self, version: int, weights: Weights) -> None:
        """Send the weights to workers with the next heartbeat or request."""
        self._published = time.monotonic()
        self._process.say(messages.Publish(version, _arrays(weights)))

    def workers(self) -> int:
        return self._workers

    def free_slots(self) -> int:
        """Return the number of requests that may be submitted, with `in_flight` per started worker."""
        return 0 if self._process.failure else self._rollout.in_flight * self._workers - self._out

    def submit(self, request: RolloutRequest) -> None:
        self._out += 1
        self._process.say(messages.Submit(request))

    def ready(self, wait: bool) -> list[Rollout]:
        """Return the oldest finished rollout."""
        if wait:
            self._wait(lambda: bool(self._rollouts))
        self._warn()
        if not self._rollouts:
            self._raise_failure()
            return []
        rollout, slot, layout = self._rollouts.popleft()
        arrays = self._process.slots[slot].read(layout)
        self._process.say(messages.Free(slot))
        self._out -= 1
        return [replace(rollout, transitions=self._kind._make(arrays))]

    def evaluate(self, tag: int, weights: Weights, stop_requested: Stop) -> None:
        """Start an evaluation, see `RolloutBackend`; `close` ends it."""
        self._under_way[tag] = {}
        if self._opponents:
            self._process.say(messages.Evaluate(tag, _arrays(weights), self._opponents))
        else:
            self._evaluations.append((tag, {}))

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        if wait and self._under_way:
            self._wait(lambda: bool(self._evaluations))
            if not self._evaluations:
                self._raise_failure()
        self._warn()
        done = [self._evaluations.popleft() for _ in range(len(self._evaluations))]
        for tag, _ in done:
            del self._under_way[tag]
        return done

    def describe(self, stop_requested: Stop) -> str:
        """Wait until the workers have been requested and describe them. Raises SettingsError if there are none."""
        while not self._description and not stop_requested():
            self._wait(lambda: bool(self._description))
            if not self._description:
                self._raise_failure()
        return self._description

    def close(self) -> None:
        self._process.close()

    def _wait(self, done: Callable[[], bool]) -> None:
        """Wait up to a second, and not at all after a failure."""
        with self._received:
            self._received.wait_for(lambda: done() or self._process.failure is not None, WAIT_SECONDS)

    def _warn(self) -> None:
        while self._warnings:
            log.warning("%s", self._warnings.popleft())

    def _raise_failure(self) -> None:
        if self._process.failure is not None:
            raise self._process.failure


def _arrays(weights: Weights) -> WeightArrays:
    return {name: tensor.cpu().numpy() for name, tensor in weights.items()}


def nodes_of_cluster(settings: TrainSettings) -> list[str]:
    """Return one line of resources per node of `RayBackend`'s cluster. Raises UserError."""
    with closing(RayBackend(settings, describe_nodes=True)) as backend:
        return backend.describe(never).splitlines()
