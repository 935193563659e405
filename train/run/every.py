"""Schedule of actions that are due every N episodes."""

import math
import time
from collections.abc import Callable, Mapping

ROWS = 2_000  # `dense` of log rows
HISTOGRAMS = 128  # `dense` of histograms, which are 100 times larger
SHARE = 0.02  # maximum share of the time of an action with `most` and no share of its own


class Every:
    """Action that is due at each multiple of `every` episodes, but at least `seconds` after the last time.

    If it falls due earlier, it waits. A fast run therefore acts every N seconds, a slow one every N episodes. `clock`
    returns seconds. With `dense` it is thinned, see `passes`.

    With `most` above `seconds`, the distance depends on the cost: an action that took s seconds, until `ended`, is due
    again s / `share` seconds after it began, bounded by `seconds` and `most`. While it runs, the distance is `most`.
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
        self.passed = 0  # multiples of `every` at the last time; saved in checkpoints
        self._every, self._clock, self._dense = every, clock, dense
        self._least, self._most, self._share = seconds, max(seconds, most), share
        self.last, self.distance = -math.inf, seconds  # time it was last due, and seconds until the next

    def skip(self, episodes: int) -> None:
        """Count everything due by `episodes` as done."""
        self.passed = episodes // self._every

    def take(self, episodes: int) -> bool:
        """Return whether the action is due after `episodes`; if so, count it as done."""
        reached = episodes // self._every
        self.passed = min(self.passed, reached)  # a smaller `every` before the run was resumed counted more
        due = passes(self.passed, reached, self._dense) and self._clock() - self.last >= self.distance
        if due:
            self.passed = reached
            self.started()
        return due

    def started(self) -> None:
        """Restart the distance to the next time."""
        self.last, self.distance = self._clock(), self._most

    def ended(self, begun: float) -> float:
        """Record the end of the action that began at `begun` (then `last`); set `distance` and return the duration."""
        took = self._clock() - begun
        self.distance = min(max(self._least, took / self._share), self._most)
        return took


def passes(before: int, reached: int, dense: int | None) -> bool:
    """Return whether one of the integers after `before`, up to `reached`, is due.

    With `dense`, the output grows with the logarithm of a run's length: all are due up to twice `dense`, and the
    distance doubles whenever the length does, so it is at most `reached` / `dense`.
    """
    power = 0 if dense is None else max(0, (reached // dense).bit_length() - 1)
    return reached >> power > before >> power


def restore(all_of: Mapping[str, Every], passed: Mapping[str, int]) -> None:
    """Restore the counts of a checkpoint. Raises KeyError if one is missing."""
    for name, each in all_of.items():
        each.passed = passed[name]
