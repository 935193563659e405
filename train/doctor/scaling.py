"""Gain from more CPUs and nodes with `rollout=ray`: a formula of two measured rates.

    decisions/s = min((CPUs - t) w, u d / f)        updates/s = min(u, decisions/s / d)

`w` is the decisions/s of a worker, which uses one CPU. `u` is the updates/s of the learner, which uses `t` CPUs. `f` is
`learner.samples_floor`. `d` is the decisions per update, `learner.batch_size / learner.samples_per_insert`, or more
where forced moves are not learned from. All nodes' CPUs count, assumed like the measured ones. Ray's overhead is not.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rich.table import Table

CPUS = (8, 16, 64)  # rows of the table
WORKERS, LEARNER = "workers", "learner"


class Scaled(NamedTuple):
    """Rates per second of a run with this number of CPUs, and the stage that limits it."""

    cpus: int
    decisions: float
    updates: float
    limit: str


@dataclass(frozen=True)
class Scaling:
    """Rates of a machine; see the module's formula."""

    worker: float  # decisions/s of one worker
    updates: float  # updates/s of a learner that never waits
    decisions: float  # per update
    floor: float = 1.0
    threads: int = 1  # CPUs of the learner
    where: str = "on the CPU"  # where the learner computes

    def on(self, cpus: int) -> Scaled:
        """Return the rates with this number of CPUs, at least one of which plays."""
        played = max(1, cpus - self.threads) * self.worker
        learned = self.updates * self.decisions / self.floor
        decisions, limit = (played, WORKERS) if played <= learned else (learned, LEARNER)
        return Scaled(cpus, decisions, min(self.updates, decisions / self.decisions), limit)

    def enough(self) -> int:
        """Return the number of CPUs that keep the learner busy; more would play games faster than it learns."""
        return self.threads + max(1, math.ceil(self.updates * self.decisions / self.floor / self.worker))


def screen(scaling: Scaling) -> Iterator[Table | str]:
    """Yield a table with a row per number of CPUs, and a line with the number that is enough."""
    table = Table("CPUs", "decisions/s", "updates/s", "limited by", title=f"rollout=ray, learner {scaling.where}")
    for found in map(scaling.on, CPUS):
        table.add_row(f"{found.cpus}", f"{found.decisions:,.0f}", f"{found.updates:,.1f}", found.limit)
    yield table
    yield (
        f"{scaling.enough()} CPUs are enough for this learner: a worker plays {scaling.worker:,.0f} decisions/s, "
        f"the learner makes {scaling.updates:,.1f} updates/s of {scaling.decisions:,.0f} decisions each"
    )
