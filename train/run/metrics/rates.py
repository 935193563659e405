"""Speed of a run."""

import time
from collections import deque
from collections.abc import Callable


class Rates:
    """Decisions and updates per second since the last call, or over the last `window` seconds if that is longer."""

    def __init__(self, window: float = 0.0, clock: Callable[[], float] = time.perf_counter) -> None:
        self._window, self._clock = window, clock
        self._seen: deque[tuple[float, int, int]] = deque()

    def per_second(self, env_steps: int, updates: int) -> tuple[float, float]:
        """Return the rates, given the current counts; zeros at the first call."""
        now = self._clock()
        self._seen.append((now, env_steps, updates))
        while len(self._seen) > 2 and now - self._seen[1][0] >= self._window:
            self._seen.popleft()
        then, steps_then, updates_then = self._seen[0]
        seconds = max(now - then, 1e-9)
        return (env_steps - steps_then) / seconds, (updates - updates_then) / seconds
