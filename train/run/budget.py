"""The budget of a run in episodes or minutes, and the spent part of it."""

from __future__ import annotations

import time
from collections.abc import Callable

_SURE_SECONDS = 2.0  # of training, before an estimate of the rest is worth showing


class Budget:
    """Episodes, minutes of training, or both: whichever comes first ends the run.

    The clock runs from the first rollout of each start of the run: starting workers and compiling do not count.
    `clock` gives seconds.
    """

    def __init__(
        self, episodes: int | None, minutes: float | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.episodes, self.minutes = episodes, minutes
        self.seconds_before = 0.0  # of earlier starts of the run, and of what the trainer itself has timed
        self._clock = clock
        self._started: float | None = None

    def start_clock(self) -> None:
        """Start the clock, when the first rollout has come; later calls change nothing."""
        if self._started is None:
            self._started = self._clock()

    def add(self, seconds: float) -> None:
        """Count training that was timed by the trainer itself, whose clock is then never started."""
        self.seconds_before += seconds

    def seconds(self) -> float:
        """Seconds of training, over all starts of the run."""
        return self.seconds_before + (0.0 if self._started is None else self._clock() - self._started)

    def episodes_left(self, episodes: int) -> int | None:
        """Return the number of games that are left to play after `episodes`; None without a limit."""
        return None if self.episodes is None else max(0, self.episodes - episodes)

    def time_is_up(self) -> bool:
        """Return whether the minutes are over."""
        return self.minutes is not None and self.seconds() >= 60 * self.minutes

    def seconds_left(self, episodes: int) -> float | None:
        """Estimate the remaining seconds at the present rate; None in the first seconds."""
        seconds, spent = self.seconds(), self.spent(episodes)
        return seconds * (1 - spent) / spent if spent > 0 and seconds >= _SURE_SECONDS else None

    def spent(self, episodes: int) -> float:
        """The share of the budget that is spent after `episodes`, 0 to 1. It follows the clock if minutes are set."""
        by_episodes = episodes / self.episodes if self.episodes is not None else 0.0
        by_time = self.seconds() / (60 * self.minutes) if self.minutes is not None else 0.0
        return min(1.0, max(by_episodes, by_time))
