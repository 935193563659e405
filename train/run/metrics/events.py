"""Event files of TensorBoard: each start of a run writes one, and they are read in the order of their names."""

from __future__ import annotations

import os
import re
import socket
import time
from pathlib import Path
from typing import Any

from tensorboard.compat.proto.event_pb2 import Event, SessionLog
from tensorboard.summary.writer.record_writer import RecordWriter

PATTERN = "events.out.tfevents.*"
_SECONDS = re.compile(r"events\.out\.tfevents\.(\d+)\.")


class EventFile:
    """A new event file in the folder; what earlier ones have at `purge_step` and later counts no more.

    It is one open file, and its name follows those of all others. `torch.utils.tensorboard.SummaryWriter` opens its
    file for each number, and two of its files of one second may be read in either order.
    """

    def __init__(self, folder: Path, purge_step: int) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._file = (folder / _next_name(folder)).open("xb")
        self._records = RecordWriter(self._file)
        self._write(Event(file_version="brain.Event:2"), 0)
        self._write(Event(session_log=SessionLog(status=SessionLog.START)), purge_step)
        self.flush()

    def add(self, summary: Any, env_steps: int) -> None:
        """A `Summary` after so many decisions."""
        self._write(Event(summary=summary), env_steps)

    def flush(self) -> None:
        """Hand all over to the system."""
        self._file.flush()

    def close(self) -> None:
        """Everything to disk."""
        self._file.close()

    def _write(self, event: Any, step: int) -> None:
        event.wall_time, event.step = time.time(), step
        self._records.write(event.SerializeToString())


def _next_name(folder: Path) -> str:
    """As TensorBoard names its files, with a second after all others: clocks of nodes differ, and starts are short."""
    found = (_SECONDS.match(path.name) for path in folder.glob(PATTERN))
    seconds = max([int(time.time()), *(int(match[1]) + 1 for match in found if match)])
    return f"events.out.tfevents.{seconds:010d}.{socket.gethostname()}.{os.getpid()}"
