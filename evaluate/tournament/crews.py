"""Who plays the units of a tournament: this process, several processes, or Ray."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Protocol

from command.errors import UserError
from evaluate.tournament.settings import TournamentSettings
from evaluate.tournament.units import Played, Unit, Worker
from train.dqn.players.resolve import ResolvedPlayer
from train.dqn.rollout.ray.units import RayUnits

# Of work that is left: processes, each of which compiles for itself, take 10 to 30 s to start. Where others keep the
# CPUs busy they bring nothing, and this then costs a tenth of the time at most.
WORTH_SECONDS = 300.0


class CrewLostError(UserError):
    """A process that plays has ended; what was played is in the folder, and the same command goes on."""


class Crew(Protocol):
    """Plays units in any order."""

    def free(self) -> int:
        """How many more units can be played at the same time now."""

    def submit(self, unit: Unit) -> None:
        """Have it played."""

    def ready(self) -> list[Played]:
        """Wait for at least one of the units submitted. Raises what a player raises, and CrewLostError."""

    def close(self) -> None:
        """End what was started; units that are being played are lost."""


class Alone:
    """This process. See `Crew`."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._units: list[Unit] = []

    def free(self) -> int:
        """See `Crew`."""
        return 1 - len(self._units)

    def submit(self, unit: Unit) -> None:
        """See `Crew`."""
        self._units.append(unit)

    def ready(self) -> list[Played]:
        """See `Crew`."""
        return [self._worker.play(self._units.pop())]

    def close(self) -> None:
        """See `Crew`."""


class Processes:
    """So many processes of this machine, each with players of its own. See `Crew`."""

    def __init__(self, settings: TournamentSettings, players: Mapping[str, ResolvedPlayer], count: int) -> None:
        context = multiprocessing.get_context("spawn")  # a fork would inherit PyTorch's threads half alive
        self._idle: list[Connection] = []
        self._busy: list[Connection] = []
        self._processes: dict[Connection, BaseProcess] = {}
        try:
            for _ in range(count):
                mine, theirs = context.Pipe()
                process = context.Process(target=serve, args=(theirs, settings, players), daemon=True)
                process.start()
                theirs.close()  # so that the end of the process is the end of the connection
                self._processes[mine] = process
                self._idle.append(mine)
        except BaseException:
            self.close()
            raise

    def free(self) -> int:
        """See `Crew`."""
        return len(self._idle)

    def submit(self, unit: Unit) -> None:
        """See `Crew`."""
        connection = self._idle.pop(0)
        self._busy.append(connection)
        try:
            connection.send(unit)
        except OSError:
            raise self._lost(connection) from None

    def ready(self) -> list[Played]:
        """See `Crew`."""
        done = []
        for connection in wait(self._busy):
            assert isinstance(connection, Connection)
            try:
                answer = connection.recv()
            except (EOFError, OSError):
                raise self._lost(connection) from None
            if isinstance(answer, Exception):
                raise answer
            self._busy.remove(connection)
            self._idle.append(connection)
            done.append(answer)
        return done

    def _lost(self, connection: Connection) -> CrewLostError:
        process = self._processes[connection]
        process.join(5)
        code = process.exitcode
        how = f"was killed by signal {-code}" if code is not None and code < 0 else f"ended with exit code {code}"
        return CrewLostError(
            "processes",
            f"a process that plays {how}",
            "the same command with folder= goes on, with fewer processes if memory was short",
        )

    def close(self) -> None:
        """See `Crew`."""
        for process in self._processes.values():
            process.kill()
        for connection, process in self._processes.items():
            process.join()
            connection.close()


def serve(connection: Connection, settings: TournamentSettings, players: Mapping[str, ResolvedPlayer]) -> None:
    """Play the units that come, in a process of its own, until nobody sends any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one, which ends it
    threading.Thread(target=_end_with_parent, daemon=True).start()
    answer: Callable[[Unit], Played | Exception] = Answering(settings, players)
    with suppress(EOFError, OSError):
        while True:
            connection.send(answer(connection.recv()))


def _end_with_parent() -> None:
    """However it ended: nobody wants what is being played here."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


class Answering:
    """A worker that is made at the first unit, and gives the error where there is one: for other processes."""

    def __init__(self, settings: TournamentSettings, players: Mapping[str, ResolvedPlayer]) -> None:
        self._settings, self._players = settings, players
        self._worker: Worker | None = None

    def __call__(self, unit: Unit) -> Played | Exception:
        """The results of a unit, or what to raise in their place."""
        try:
            self._worker = self._worker or Worker(self._settings, self._players)
            return self._worker.play(unit)
        except UserError as error:
            return error
        except Exception:  # it may not be one that can be sent
            return RuntimeError(traceback.format_exc())


class OnRay:
    """A process for every CPU of a Ray cluster: that of RAY_ADDRESS, or one of this machine. See `Crew`."""

    def __init__(self, settings: TournamentSettings, players: Mapping[str, ResolvedPlayer], folder: Path) -> None:
        make, again = partial(Answering, settings, players), f"the same command with folder={folder} goes on"
        self._units = RayUnits(make, "processes=ray", "processes=auto", again, folder / "ray.log")
        self.submit, self.free, self.close = self._units.submit, self._units.free, self._units.close

    def ready(self) -> list[Played]:
        """See `Crew`."""
        answers: list[Played | Exception] = self._units.ready()
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return [answer for answer in answers if isinstance(answer, Played)]


class Growing:
    """This process, until what is left is worth the start of several. See `Crew`."""

    def __init__(self, worker: Worker, start: Callable[[], Crew], seconds_left: Callable[[], float]) -> None:
        self._crew: Crew = Alone(worker)
        self._start: Callable[[], Crew] | None = start
        self._seconds_left = seconds_left

    def free(self) -> int:
        """See `Crew`."""
        if self._start is not None and self._seconds_left() > WORTH_SECONDS and self._crew.free():
            self._crew, self._start = self._start(), None
        return self._crew.free()

    def submit(self, unit: Unit) -> None:
        """See `Crew`."""
        self._crew.submit(unit)

    def ready(self) -> list[Played]:
        """See `Crew`."""
        return self._crew.ready()

    def close(self) -> None:
        """See `Crew`."""
        self._crew.close()
