"""A forecast of runs with Ray workers on larger machines, from speeds measured on this one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

from rich.table import Table

from train.dqn.learner_threads import STEPS

MOST_BATCH = 16_384  # of all replicas together: more cost strength (docs/explanation/performance.md)
# Assumed, not measured: what a ring of replicas takes to average one gradient.
_BYTES_PER_SECOND = {False: 2e9, True: 1e9}  # within a node, and between nodes with 10 Gbit/s
_STEP_SECONDS = {False: 5e-5, True: 1e-4}  # of each of the 2 (replicas - 1) steps of a ring
_BY_RAY = 3.8e6  # decisions a second of the process that speaks Ray, per replica (the same page)
_REPLICAS = (1, 2, 4, 8, 16)


class Speeds(NamedTuple):
    """What one CPU plays, and what updates of the run's own learner take."""

    playing: float  # seconds of a decision
    inserting: float  # the same
    updating: dict[int, float]  # seconds of an update by that number of threads; by one of a GPU
    pays: float  # decisions that an update pays for
    floor: float  # learner.samples_floor, which several replicas do without
    weights: int
    batch: int
    on_gpu: bool


class LargerMachine(NamedTuple):
    """Nodes that are alike."""

    name: str
    nodes: int
    cpus: int  # of each
    gpus: int = 0


class Foretold(NamedTuple):
    """The best way to use a machine: replicas and threads of the learner, and what they and the workers can do."""

    replicas: int  # on all nodes
    threads: int  # of each
    workers: int  # on all nodes
    learning: float  # decisions a second that updates pay for
    playing: float  # decisions a second that are played and brought

    @property
    def decisions(self) -> float:
        """A second, of the whole run."""
        return min(self.learning, self.playing)


ON_CPUS = (LargerMachine("8 CPUs", 1, 8), LargerMachine("64 CPUs", 1, 64), LargerMachine("8 nodes of 64 CPUs", 8, 64))
ON_GPUS = tuple(LargerMachine(f"{gpus} such GPUs, 64 CPUs", 1, 64, gpus) for gpus in (1, 4))


def seconds_of_update(updating: dict[int, float], threads: int) -> float:
    """That of a number of threads; where not measured, by Amdahl's law through the first and the last that were."""
    if threads in updating:
        return updating[threads]
    one, most = updating[1], max(updating)
    serial = 1.0 if most == 1 else min(1.0, max(0.0, (updating[most] / one - 1 / most) / (1 - 1 / most)))
    return one * (serial + (1 - serial) / threads)


def seconds_of_average(weights: int, replicas: int, between_nodes: bool) -> float:
    """A ring: each replica sends 2 (R - 1) / R of its gradient, in 2 (R - 1) steps."""
    sent = 8 * weights * (replicas - 1) / replicas
    return sent / _BYTES_PER_SECOND[between_nodes] + 2 * (replicas - 1) * _STEP_SECONDS[between_nodes]


def foretell(speeds: Speeds, machine: LargerMachine) -> Foretold:
    """The most decisions a second, by the fewest replicas and threads that bring them."""
    found = []
    for replicas, threads in product(_REPLICAS, (1,) if machine.gpus else STEPS):
        here = -(-replicas // machine.nodes)
        uneven = replicas > 1 and replicas % machine.nodes > 0
        too_large = replicas > max(1, MOST_BATCH // speeds.batch) or replicas > (machine.gpus or replicas)
        if uneven or too_large or here * threads >= machine.cpus:
            continue
        workers = machine.cpus * machine.nodes - replicas * threads
        update = seconds_of_update(speeds.updating, threads)
        update += seconds_of_average(speeds.weights, replicas, machine.nodes > 1)
        pays = speeds.pays / (speeds.floor if replicas == 1 else 1)
        learning = replicas / (update / pays + speeds.inserting)
        found.append(Foretold(replicas, threads, workers, learning, min(workers / speeds.playing, replicas * _BY_RAY)))
    return max(found, key=lambda each: each.decisions)


def screen(speeds: Speeds) -> Iterator[Table]:
    """A table of larger machines."""
    table = Table("machine", "decisions/s", "learner", "workers", "limited by", title="foretold, not measured")
    for machine in ON_GPUS if speeds.on_gpu else ON_CPUS:
        best = foretell(speeds, machine)
        learner = f"replicas={best.replicas} threads={best.threads}: {best.learning:,.0f}"
        limit = "the learner" if best.learning < best.playing else "the workers"
        table.add_row(machine.name, f"{best.decisions:,.0f}", learner, f"{best.workers}: {best.playing:,.0f}", limit)
    yield table
