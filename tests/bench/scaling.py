"""The constants of `train.doctor.throughput_model`, measured anew with stub workers and two Ray nodes here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import combinations
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray
from ray.cluster_utils import Cluster

from tests.bench.stub_cluster import DECISIONS_PER_GAME, GAMES, SECONDS_OF_GAMES, Seen, StubCluster, stub_cluster
from tests.bench.timing import report
from train.doctor.throughput_model import Load, RayCosts, Speeds, predict

WORKERS, ROLLOUTS, SECONDS = (2, 8, 32), (512, 64, 8), 6.0  # stub workers, games of a rollout, of each stretch
CHECKED = (16, 128)  # workers and games that no constant is fitted to
STORE = 3_000_000  # bytes of a rollout
_STORE_MEMORY = 150 << 20


def watch_all(workers: Sequence[int], rollouts: Sequence[int], seconds: float) -> tuple[list[Seen], list[float]]:
    """Each number of workers with each size of rollout and with none; and the seconds of a worker's calls."""
    seen, calls = [], []
    for count in workers:
        with stub_cluster(count) as stubs:
            for games in (*rollouts, 0):
                seen.append(stubs.watch(seconds, games))
                if games:
                    calls.append(_call(seen[-1], games))
    return seen, calls


def _call(seen: Seen, games: int) -> float:
    """What a worker takes for a rollout besides its play."""
    return max(0.0, seen.workers / max(seen.messages, 1e-9) - SECONDS_OF_GAMES * games / GAMES)


def non_negative(factors: NDArray[np.float64], wanted: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least squares of `factors @ x = wanted` with no `x` below 0, by trying which of the few are 0."""
    best, least = np.zeros(factors.shape[1]), float(np.sum(wanted**2))
    for size in range(1, factors.shape[1] + 1):
        for chosen in combinations(range(factors.shape[1]), size):
            columns = list(chosen)
            found = np.linalg.lstsq(factors[:, columns], wanted, rcond=None)[0]
            error = float(np.sum((factors[:, columns] @ found - wanted) ** 2))
            if (found >= 0).all() and error < least:
                best, least = np.zeros(factors.shape[1]), error
                best[columns] = found
    return best


def fit(seen: Sequence[Seen], calls: Sequence[float], store: float, transfer: float) -> RayCosts:
    """The constants that explain best what was seen; errors count relative to what was seen."""
    playing = [each for each in seen if each.messages > 0]
    thread = non_negative(*_relative([(each.messages, 1.0) for each in playing], [each.hearing for each in playing]))
    factors = [(each.messages, each.bytes, each.workers, 1.0) for each in seen]
    message, byte, beat, _ = non_negative(*_relative(factors, [each.driver for each in seen]))
    published = sum(each.publications for each in playing)
    publishing = sum(each.publishing for each in playing) / published
    return RayCosts(
        call=float(np.median(calls)),
        hear=float(thread[0]),
        publish=publishing,
        message=float(message),
        driver_byte=float(byte),
        beat=float(beat),
        store=store,
        transfer=transfer,
    )


def _relative(
    factors: Sequence[tuple[float, ...]], wanted: Sequence[float]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    weights = 1 / np.maximum(np.array(wanted), 1e-3)  # a thousandth of a core is as good as nothing
    return np.array(factors) * weights[:, None], np.array(wanted) * weights


def load_of(stubs: StubCluster, games: int, bytes_per_decision: float) -> Load:
    """What stub workers ask for: one node that never runs out of CPUs, for they take next to none, and no updates."""
    return Load(
        workers=stubs.workers,
        nodes=1,
        cpus=10_000,
        decisions=games * DECISIONS_PER_GAME,
        bytes=bytes_per_decision,
        batch_size=1,
        samples_per_insert=0.0,
        publish_seconds=0.5,
        weight_bytes=stubs.weight_bytes,
    )


STUB_SPEEDS = Speeds(playing=SECONDS_OF_GAMES / (GAMES * DECISIONS_PER_GAME), inserting=0.0, update=0.0)


def foretold(stubs: StubCluster, seen: Seen, games: int, costs: RayCosts) -> tuple[float, float]:
    """Rollouts a second and the driver's share that the model says for what was seen."""
    decisions = games * DECISIONS_PER_GAME
    load = load_of(stubs, games, seen.bytes / (seen.messages * decisions))
    found = predict("ray", load, STUB_SPEEDS, costs)
    return found.decisions / decisions, found.busy["driver"]


@contextmanager
def _two_nodes() -> Iterator[None]:
    node: dict[str, Any] = {"num_cpus": 1, "object_store_memory": _STORE_MEMORY}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        cluster.add_node(**node, resources={"second": 1})
        ray.init(address=cluster.address, log_to_driver=False, include_dashboard=False)
        yield
    finally:
        ray.shutdown()
        cluster.shutdown()


def copy_speeds(rounds: int = 30) -> tuple[float, float]:
    """Bytes a second into the object store, and from another node's into this one's (over loopback here)."""

    @ray.remote(resources={"second": 0.01}, num_cpus=0)
    def put() -> list[Any]:
        return [ray.put(np.ones(STORE, np.uint8))]

    array, copies, transfers = np.ones(STORE, np.uint8), [], []
    with _two_nodes():
        for _ in range(rounds):
            started = time.perf_counter()
            reference = ray.put(array)
            copies.append(time.perf_counter() - started)
            del reference
            (there,) = ray.get(put.remote())
            started = time.perf_counter()
            ray.get(there)
            transfers.append(time.perf_counter() - started)
            del there
    return STORE / min(copies), STORE / min(transfers)


def scaling() -> None:
    """All of them, as figures and a line for train/doctor/throughput_model.py; how they foretell another cluster."""
    seen, calls = watch_all(WORKERS, ROLLOUTS, SECONDS)
    costs = fit(seen, calls, *copy_speeds())
    units = {"store": "bytes/s", "transfer": "bytes/s", "driver_byte": "s/byte", "beat": "share of a core"}
    for name, value in vars(costs).items():
        report(f"scaling_{name}", value, units.get(name, "s"))
    workers, games = CHECKED
    with stub_cluster(workers) as stubs:
        found = stubs.watch(SECONDS, games)
        rate, driver = foretold(stubs, found, games, costs)
    report("scaling_rate_foretold", rate / found.messages, "foretold over seen", seen=round(found.messages, 1))
    report("scaling_driver_foretold", driver / found.driver, "foretold over seen", seen=round(found.driver, 3))
    print("MEASURED = RayCosts(" + ", ".join(f"{name}={value:.3g}" for name, value in vars(costs).items()) + ")")


FIGURES = (scaling,)
