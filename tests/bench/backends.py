"""How fast a rollout backend plays, whatever its kind."""

from __future__ import annotations

import sys
import time
from itertools import count

import torch

from command.checks import SettingsError
from command.compose import compose
from tests.bench.timing import report
from train.__main__ import make_backend
from train.dqn.rollout import LocalBackend, RolloutBackend, RolloutRequest, acting_network
from train.settings.dqn import TrainSettings

CPU = torch.device("cpu")
ROUNDS, SECONDS = 4, 1.5


def decisions_per_second(rollouts: RolloutBackend, games: int, seconds: float, first: int = 0) -> float:
    """With every worker kept busy, from the first rollout that came back; at the end nothing is out any more."""
    firsts, out, decisions, started = count(first, games), 0, 0, 0.0
    while not started or time.perf_counter() - started < seconds:
        while rollouts.free_slots() > 0:
            rollouts.submit(RolloutRequest(next(firsts), games, 0.05))
            out += 1
        done = rollouts.ready(wait=True)
        out -= len(done)
        decisions += sum(len(rollout.transitions.action) for rollout in done) if started else 0
        started = started or (time.perf_counter() if done else 0.0)
    passed = time.perf_counter() - started
    while out:
        out -= len(rollouts.ready(wait=True))
    return decisions / passed


def threads_over_local() -> None:
    """Games on threads with the network on the CPU, over one process that does all in turn, in rollouts of one size."""
    try:
        threaded = compose(TrainSettings, "train", ["rollout=threads", "device=cpu"])
    except SettingsError as error:
        print(f"threads_over_local: not measured: {error}", file=sys.stderr)
        return
    games = threaded.rollout.games
    alone = compose(TrainSettings, "train", ["rollout=local", "device=cpu", f"rollout.games={games}"])
    weights = acting_network(alone.load_game(), alone, CPU).float().state_dict()
    local, threads = LocalBackend(alone, CPU), make_backend(threaded, CPU)
    try:
        for backend in (local, threads):
            backend.publish(0, weights)
            decisions_per_second(backend, games, 0.1)  # what is compiled at the first call
        rates = [[decisions_per_second(backend, games, SECONDS) for backend in (local, threads)] for _ in range(ROUNDS)]
    finally:
        threads.close()
        local.close()
    best_local, best_threads = (max(each) for each in zip(*rates, strict=True))
    report(
        "threads_over_local", best_threads / best_local, "ratio", local=round(best_local), threads=round(best_threads)
    )


FIGURES = (threads_over_local,)
