"""When something that is done every so many episodes is due."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping


class Cadence:
    """Due whenever a multiple of `every` episodes is passed, but never within `seconds` of the last time.

    If it falls due before `seconds` are over, it waits until they are. So a fast run does it every so many seconds, a
    slow one every so many episodes. `clock` gives seconds.
    """

    def __init__(self, every: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.passed = 0  # multiples of `every` at the last time; saved with a checkpoint
        self._every, self._seconds, self._clock = every, seconds, clock
        self._last = -math.inf

    def skip(self, episodes: int) -> None:
        """What was due after so many episodes counts as done."""
        self.passed = episodes // self._every

    def take(self, episodes: int) -> bool:
        """Whether it is due after so many episodes; if so, it counts as done."""
        due = episodes // self._every > self.passed and self._clock() - self._last >= self._seconds
        if due:
            self.passed = episodes // self._every
            self._last = self._clock()
        return due


def restore(cadences: Mapping[str, Cadence], passed: Mapping[str, int]) -> None:
    """Set each cadence to the count that a checkpoint holds for it; one that the checkpoint lacks starts from 0."""
    for name in cadences.keys() & passed.keys():
        cadences[name].passed = passed[name]
