"""How fast a run goes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Rates:
    """What had been counted at some moment, for rates since then."""

    env_steps: int
    updates: int = 0
    time: float = field(default_factory=time.perf_counter)

    def per_second(self, env_steps: int, updates: int) -> dict[str, float]:
        """Decisions and updates per second since that moment."""
        seconds = max(time.perf_counter() - self.time, 1e-9)
        return {
            "time/env_steps_per_second": (env_steps - self.env_steps) / seconds,
            "time/updates_per_second": (updates - self.updates) / seconds,
        }


class RecentRates:
    """Decisions and updates per second over the last `WINDOW` seconds, for a person to look at."""

    WINDOW = 20.0

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._clock = clock
        self._seen: deque[tuple[float, int, int]] = deque()

    def per_second(self, env_steps: int, updates: int) -> tuple[float, float]:
        """The rates, given the counts of now; zeros at the first call."""
        now = self._clock()
        self._seen.append((now, env_steps, updates))
        while len(self._seen) > 2 and now - self._seen[1][0] >= self.WINDOW:
            self._seen.popleft()
        then, steps_then, updates_then = self._seen[0]
        seconds = max(now - then, 1e-9)
        return (env_steps - steps_then) / seconds, (updates - updates_then) / seconds
