"""What a rollout worker tells Ray's dashboard of itself, and Prometheus, where it reads the nodes of the cluster.

Ray puts `ray_` before each name, and says beside it which worker on which node it is of.
"""

from __future__ import annotations

import time

from ray.util.metrics import Counter, Gauge

DECISIONS, GAMES = "busso_decisions", "busso_games"
RATE, LAG = "busso_decisions_per_second", "busso_weights_lag"


class Gauges:
    """Of one worker of a run."""

    def __init__(self, run: str) -> None:
        keys, self._tags = ("run",), {"run": run}
        self._decisions = Counter(DECISIONS, "decisions that were played", keys)
        self._games = Counter(GAMES, "games that were played", keys)
        self._rate = Gauge(RATE, "decisions a second in the last rollout, with the wait before it", keys)
        self._lag = Gauge(LAG, "updates between the weights of the last rollout and the newest heard of", keys)
        self._last = time.perf_counter()

    def played(self, games: int, decisions: int, lag: int) -> None:
        """A rollout has been played, with weights that are `lag` updates old."""
        now = time.perf_counter()
        self._decisions.inc(decisions, self._tags)
        self._games.inc(games, self._tags)
        self._rate.set(decisions / max(now - self._last, 1e-9), self._tags)
        self._lag.set(lag, self._tags)
        self._last = now
