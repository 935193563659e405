"""Learner's handle of the Ray driver process. No Ray here."""

import importlib.util
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from busso.cards.base.errors import UserError
from busso.command.settings.checks import SettingsError
from busso.command.system import shared_file
from busso.train.dqn.rollout.backend import BackendLostError
from busso.train.dqn.rollout.ray import private
from busso.train.dqn.rollout.ray.messages import ASKED, INSTEAD, SLOTS, Order, Slot
from busso.train.dqn.rollout.ray.supervisor import GRACE_SECONDS, KILL_SECONDS

ROOT = Path(__file__).parents[5]  # the clone or site-packages, where the nodes find this package, too
_LOOK_SECONDS = 1.0
# Under `uv run` Ray would upload the working folder, up to 500 MB, which workers do not need.
_NO_UPLOAD = {"RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}


class RayProcess:
    """Supervisor process and its child, the driver. `listen` starts a thread that passes messages to `hear`.

    When the process has ended, or was silent for `patience` seconds, `failure` is the error: BackendLostError if a
    retry may help. A cluster started here has a private folder, which is removed with it.
    """

    def __init__(self, order: Order, says: Path, patience: float, hear: Callable[..., None]) -> None:
        if importlib.util.find_spec("ray") is None:
            raise SettingsError(ASKED, "ray is not installed", f"use {INSTEAD}")
        self.failure: Exception | None = None
        self._started = False
        self._says, self._patience, self._on_message = says, patience, hear
        self._see = "" if str(says) == os.devnull else f", see {says}"
        self._outbox: queue.SimpleQueue[tuple[Any, ...] | Order | None] = queue.SimpleQueue()
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
        files = [shared_file() for _ in range(SLOTS)]
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
                        "busso.train.dqn.rollout.ray.supervisor",
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

    def say(self, *message: Any) -> None:
        """Queue a message without waiting for the receiver."""
        self._outbox.put(message)

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
