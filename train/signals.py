"""Ctrl-C and SIGTERM: the first asks for a checkpoint and an orderly end, a second ends the process at once."""

from __future__ import annotations

import os
import signal
from types import FrameType, TracebackType
from typing import Any


class StopRequest:
    """Use as a context; `signal` is the number of the signal that came, or None.

    Enter it after Ray has started: Ray installs handlers of its own, which abort the process.
    """

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> StopRequest:
        self._before = {number: signal.signal(number, self._handle) for number in self.SIGNALS}
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            os._exit(128 + number)
        self.signal = number
        # Not print, which may be in the middle of a line of its own.
        os.write(2, b"\nstopping with a checkpoint; a second signal ends at once\n")
