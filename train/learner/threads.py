"""CPU threads of the learner, chosen by the number of CPUs for `learner.threads=auto`."""

import logging
from dataclasses import replace

from busso.base import system
from busso.train.network.matmul import forked
from busso.train.settings.dqn import AUTO, RolloutSettings, TrainSettings
from busso.train.settings.resolve import settings_of_run, value_at

log = logging.getLogger("train")

# From this many CPUs on, use two threads: 1.7 times the updates of one, and two workers play enough games for them.
# More threads were not measured: docs/explanation/performance.md.
CPUS_FOR_TWO = 4


def with_one_if_forked(settings: TrainSettings) -> TrainSettings:
    """Return the settings with one thread in a forked process, where PyTorch's threads do not work."""
    if not forked[0]:
        return settings
    if settings.learner.cpu_threads > 1:
        log.warning("learner.threads: 1 in a forked process; use multiprocessing's start method spawn for more")
    return replace(settings, learner=replace(settings.learner, threads=1))


def with_learner_threads(settings: TrainSettings) -> TrainSettings:
    """Return the settings of a learner on CPUs with a number instead of `auto`.

    With `rollout=local`, whose results depend on the number bit for bit, a resumed run keeps its last start's number.
    """
    if settings.learner.threads != AUTO:
        return settings
    threads = _kept(settings) if settings.rollout.kind == "local" else _beside_workers(settings.rollout)
    return replace(settings, learner=replace(settings.learner, threads=threads))


def _kept(settings: TrainSettings) -> int:
    """Return the thread count of the run's last start if this machine has as many CPUs, else 1."""
    threads = value_at(settings_of_run(settings.folder), "learner.threads")
    return threads if isinstance(threads, int) and 1 <= threads <= system.cpus() else 1


def _beside_workers(rollout: RolloutSettings) -> int:
    """Return 2 if this node has CPUs for them in addition to the requested workers, else 1."""
    workers = -(-(rollout.workers or 1) // rollout.nodes)
    return 2 if system.cpus() >= max(CPUS_FOR_TWO, workers + 2) else 1
