"""Budget of a run in episodes or minutes, and the part spent."""

import time
from collections.abc import Callable

# Clocks of `minutes` by the setting `clock`.
CLOCKS: dict[str, Callable[[], float]] = {"wall": time.perf_counter, "cpu": time.process_time}
_SURE_SECONDS = 2.0  # of training before the remaining time is estimated


class Budget:
    """Limit in episodes, minutes of training, or both; whichever is reached first ends the run.

    Each start's clock begins at its first rollout: starting workers and compiling do not count. `clock` returns
    seconds.
    """

    def __init__(
        self, episodes: int | None, minutes: float | None, clock: Callable[[], float] = time.perf_counter
    ) -> None:
        self.episodes, self.minutes = episodes, minutes
        self.seconds_before = 0.0  # seconds of earlier starts, and of training timed by the trainer
        self._clock = clock
        self._started: float | None = None

    def start_clock(self) -> None:
        """Start the clock at the first rollout; later calls do nothing."""
        if self._started is None:
            self._started = self._clock()

    def add(self, seconds: float) -> None:
        """Add training timed by the trainer itself, which then never starts the clock."""
        self.seconds_before += seconds

    def seconds(self) -> float:
        """Return the seconds of training over all starts of the run."""
        return self.seconds_before + (0.0 if self._started is None else self._clock() - self._started)

    def episodes_left(self, episodes: int) -> int | None:
        """Return the number of games left after `episodes`; None without a limit."""
        return None if self.episodes is None else max(0, self.episodes - episodes)

    def time_is_up(self) -> bool:
        """Return whether the minutes are spent."""
        return self.minutes is not None and self.seconds() >= 60 * self.minutes

    def seconds_left(self, episodes: int) -> float | None:
        """Estimate the remaining seconds at the current rate; None in the first seconds."""
        seconds, spent = self.seconds(), self.spent(episodes)
        return seconds * (1 - spent) / spent if spent > 0 and seconds >= _SURE_SECONDS else None

    def spent(self, episodes: int) -> float:
        """Return the share of the budget spent after `episodes`, 0 to 1. It depends on the clock if minutes are set."""
        by_episodes = episodes / self.episodes if self.episodes is not None else 0.0
        by_time = self.seconds() / (60 * self.minutes) if self.minutes is not None else 0.0
        return min(1.0, max(by_episodes, by_time))
