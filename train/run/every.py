"""When an action of every N episodes is due."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping

ROWS = 2_000  # `dense` of log rows
HISTOGRAMS = 128  # `dense` of histograms, which take a hundred times as much
SHARE = 0.02  # of the time, at most, for what has `most` and no share of its own


class Every:
    """Due whenever a multiple of `every` episodes is passed, but never within `seconds` of the last time.

    If it falls due before `seconds` are over, it waits until they are. So a fast run does it every N seconds, a
    slow one every N episodes. `clock` gives seconds. With `dense` it is thinned, see `passes`.

    With `most` above `seconds`, the distance depends on the cost. What took s seconds, until `ended`, is due again
    s / `share` seconds after it began, within `seconds` and `most`. Until it has ended, the distance is `most`.
    """

    def __init__(
        self,
        every: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        dense: int | None = None,
        most: float = 0.0,
        share: float = SHARE,
    ) -> None:
        self.passed = 0  # multiples of `every` at the last time; saved with a checkpoint
        self._every, self._clock, self._dense = every, clock, dense
        self._least, self._most, self._share = seconds, max(seconds, most), share
        self.last, self.distance = -math.inf, seconds  # when it was last due; seconds from then to the next time

    def skip(self, episodes: int) -> None:
        """Count all that was due after `episodes` as done."""
        self.passed = episodes // self._every

    def take(self, episodes: int) -> bool:
        """Return whether it is due after `episodes`; if so, it counts as done."""
        reached = episodes // self._every
        self.passed = min(self.passed, reached)  # it was counted in a smaller `every` before the run was resumed
        due = passes(self.passed, reached, self._dense) and self._clock() - self.last >= self.distance
        if due:
            self.passed = reached
            self.started()
        return due

    def started(self) -> None:
        """Measure the distance to the next time from now on."""
        self.last, self.distance = self._clock(), self._most

    def ended(self, begun: float) -> float:
        """Record the end of what began at `begun` (`last` of then). Sets `distance`; returns its seconds."""
        took = self._clock() - begun
        self.distance = min(max(self._least, took / self._share), self._most)
        return took


def passes(before: int, reached: int, dense: int | None) -> bool:
    """Return whether one of the integers after `before`, up to `reached`, is due.

    With `dense`, so that what is written grows with the logarithm of a run's length: up to twice `dense` all of them
    are, and whenever the run has become twice as long the distance doubles. So it is at most `reached` / `dense`.
    """
    power = 0 if dense is None else max(0, (reached // dense).bit_length() - 1)
    return reached >> power > before >> power


def restore(all_of: Mapping[str, Every], passed: Mapping[str, int]) -> None:
    """Set each to the count that a checkpoint holds for it. Raises KeyError where one is missing."""
    for name, each in all_of.items():
        each.passed = passed[name]
