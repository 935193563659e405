"""Gain of more CPUs and nodes for a run with `rollout=ray`: one formula of two rates that are measured.

    decisions/s = min((CPUs - t) w, u d / f)        updates/s = min(u, decisions/s / d)

`w` is the decisions/s of a worker, which has a CPU. `u` is the updates/s of the learner, which takes `t` CPUs. `f` is
`learner.samples_floor`. `d` is the decisions for each update, `learner.batch_size / learner.samples_per_insert`; it is
more where forced moves are not learned from. The CPUs are those of all nodes, and of the kind that was measured. What
Ray takes is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rich.table import Table

CPUS = (8, 16, 64)  # that the table has
WORKERS, LEARNER = "workers", "learner"


class Scaled(NamedTuple):
    """Rates of a run with this number of CPUs, a second, and the stage that limits it."""

    cpus: int
    decisions: float
    updates: float
    limit: str


@dataclass(frozen=True)
class Scaling:
    """The rates of a machine; see the formula of this module."""

    worker: float  # decisions/s of one
    updates: float  # updates/s, if the learner waits for nothing
    decisions: float  # for each update
    floor: float = 1.0
    threads: int = 1  # CPUs that the learner takes
    where: str = "on the CPU"  # the learner computes

    def on(self, cpus: int) -> Scaled:
        """The rates with this number of CPUs, of which one plays at least."""
        played = max(1, cpus - self.threads) * self.worker
        learned = self.updates * self.decisions / self.floor
        decisions, limit = (played, WORKERS) if played <= learned else (learned, LEARNER)
        return Scaled(cpus, decisions, min(self.updates, decisions / self.decisions), limit)

    def enough(self) -> int:
        """Number of CPUs that keep the learner busy; more would play games that it has no time for."""
        return self.threads + max(1, math.ceil(self.updates * self.decisions / self.floor / self.worker))


def screen(scaling: Scaling, cpus: Sequence[int] = CPUS) -> Iterator[Table | str]:
    """A row for each number of CPUs, and a line on how many are enough."""
    table = Table("CPUs", "decisions/s", "updates/s", "limited by", title=f"rollout=ray, learner {scaling.where}")
    for found in map(scaling.on, cpus):
        table.add_row(f"{found.cpus}", f"{found.decisions:,.0f}", f"{found.updates:,.1f}", found.limit)
    yield table
    yield (
        f"{scaling.enough()} CPUs are enough for this learner: a worker plays {scaling.worker:,.0f} decisions/s, "
        f"the learner makes {scaling.updates:,.1f} updates/s of {scaling.decisions:,.0f} decisions each"
    )
