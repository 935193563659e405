"""`learner.threads=auto`: the CPU threads of the learner, by a measurement at the start of a run."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import torch

from busso.cards.stopping import StoppedError
from busso.train.dqn.learner.learner import Learner
from busso.train.dqn.network.build import build_network
from busso.train.dqn.network.process import forked
from busso.train.dqn.rollout.request import RolloutRequest
from busso.train.dqn.rollout.worker import RolloutWorker, build_replay
from busso.train.run.launches import read_launches
from busso.train.run.metrics import resources
from busso.train.settings.dqn import AUTO, TrainSettings
from busso.train.settings.resolve import settings_of_run
from busso.train.settings.saved import value_at

log = logging.getLogger("train")

STEPS = (1, 2, 4, 8)
LEAST_GAIN = 1.3  # of a step over the one before: what it takes from the workers has to be worth it
_SECONDS, _LEAST_UPDATES = 0.3, 4  # of measuring, for each step
_PLAYING_SECONDS = 5.0  # at most: with opponents that search a rollout takes minutes
_CPU = torch.device("cpu")


def with_one_if_forked(settings: TrainSettings) -> TrainSettings:
    """The settings with one thread in a process that was forked, where PyTorch's do not work."""
    if not forked[0]:
        return settings
    if settings.learner.cpu_threads > 1:
        log.warning("learner.threads: a forked process has 1; multiprocessing's start method spawn gives more")
    return replace(settings, learner=replace(settings.learner, threads=1))


def with_learner_threads(settings: TrainSettings) -> TrainSettings:
    """The settings of a learner on CPUs with a number in place of `auto`.

    A resumed run takes the number of its last start: with `rollout=local`, whose bits follow it, always; else where
    there are as many CPUs as then. A new run measures, but with `rollout=local` it takes 1.
    """
    if settings.learner.threads != AUTO:
        return settings
    threads, most = _kept(settings), most_threads(settings)
    if threads is None and most > 1:
        threads, rates = measured(settings, most)
        said = ", ".join(f"{rate:,.1f} with {each}" for each, rate in rates.items())
        log.info("learner.threads=auto: %d; updates/s that the run can make: %s", threads, said or "not measured")
    return replace(settings, learner=replace(settings.learner, threads=threads or 1))


def _kept(settings: TrainSettings) -> int | None:
    """The number of the run's last start, if it holds for this one."""
    threads = value_at(settings_of_run(settings.folder), "learner.threads")
    if not isinstance(threads, int) or not 1 <= threads <= resources.cpus():
        return None
    starts = [] if settings.rollout.kind == "local" else read_launches(settings.folder)[-1:]
    return threads if all(value_at(start, "machine.cpus") == resources.cpus() for start in starts) else None


def most_threads(settings: TrainSettings) -> int:
    """CPUs of this node that players can do without, 1 at least; one always plays, and all where they play in turn."""
    rollout = settings.rollout
    if rollout.kind == "local":
        return 1
    return max(1, resources.cpus() - -(-(rollout.workers or 1) // rollout.nodes))


def measured(settings: TrainSettings, most: int) -> tuple[int, dict[int, float]]:
    """The threads that are worth it, `most` at most, and the updates a second that the run can make with each number.

    The run makes as many as its learner can, or as the replay ratio asks for. Both are measured with the run's own
    network, batch and number format: a rollout by one thread, then updates by themselves.
    """
    torch.set_num_threads(settings.rollout.torch_threads)
    game, end = settings.load_game(), [math.inf]
    worker = RolloutWorker(settings, _CPU, stop=lambda: time.perf_counter() > end[0])
    worker.play(RolloutRequest(0, 1, 0.0))  # compiles
    began = time.perf_counter()
    end[0] = began + _PLAYING_SECONDS
    try:
        played = worker.play(RolloutRequest(0, settings.rollout.games, settings.exploration.end))
    except StoppedError:
        return 1, {}  # players this slow need every CPU
    rows, seconds = len(played.transitions.action), time.perf_counter() - began
    paid = settings.learner.samples_per_insert / settings.learner.batch_size * rows / seconds
    small = replace(settings, replay=replace(settings.replay, capacity=2 * rows))
    replay = build_replay(game, small, _CPU)
    replay.add(played.transitions)
    learner = Learner(build_network(game, settings), replay, settings.learner, settings.target, _CPU)

    def updates(threads: int) -> float:
        """A second."""
        return min(1 / seconds_of_update(learner, threads), paid * _players(settings, threads))

    return worth_it(updates, most)


def worth_it(updates: Callable[[int], float], most: int) -> tuple[int, dict[int, float]]:
    """The greatest of STEPS, `most` at most, up to which each is LEAST_GAIN times as fast as the one before.

    `updates` gives those of a number of threads; those that were asked for come with the answer.
    """
    rates = {1: updates(1)}
    for before, threads in pairwise(each for each in STEPS if each <= most):
        rates[threads] = updates(threads)
        if rates[threads] < LEAST_GAIN * rates[before]:
            return before, rates
    return max(rates), rates


def seconds_of_update(learner: Learner, threads: int) -> float:
    """The least of several updates: what else runs on the machine only ever makes one slower."""
    torch.set_num_threads(threads)
    learner.update()  # starts the threads
    seconds, end = list[float](), time.perf_counter() + _SECONDS
    while len(seconds) < _LEAST_UPDATES or time.perf_counter() < end:
        began = time.perf_counter()
        learner.update()
        seconds.append(time.perf_counter() - began)
    return min(seconds)


def _players(settings: TrainSettings, threads: int) -> int:
    """How many play beside that number of learner threads, on all nodes."""
    return settings.rollout.workers or resources.cpus() * settings.rollout.nodes - threads
