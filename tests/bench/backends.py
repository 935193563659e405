"""Speed of a rollout backend of any kind."""

from __future__ import annotations

import time
from itertools import count

from busso.train.dqn.rollout.backend import RolloutBackend
from busso.train.dqn.rollout.request import RolloutRequest


def decisions_per_second(rollouts: RolloutBackend, games: int, seconds: float, first: int = 0) -> float:
    """Return the rate with all workers busy, from the first finished rollout on; finally drain the backend."""
    firsts, out, decisions, started = count(first, games), 0, 0, 0.0
    while not started or time.perf_counter() - started < seconds:
        while rollouts.free_slots() > 0:
            rollouts.submit(RolloutRequest(next(firsts), games, 0.05))
            out += 1
        done = rollouts.ready(wait=True)
        out -= len(done)
        decisions += sum(rollout.decisions for rollout in done) if started else 0
        started = started or (time.perf_counter() if done else 0.0)
    passed = time.perf_counter() - started
    while out:
        out -= len(rollouts.ready(wait=True))
    return decisions / passed
