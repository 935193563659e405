"""`learner.threads=auto`: the CPU threads of the learner, by the number of CPUs."""

from __future__ import annotations

import logging
from dataclasses import replace

from busso.train.dqn.network.process import forked
from busso.train.run.metrics import resources
from busso.train.settings.dqn import AUTO, RolloutSettings, TrainSettings
from busso.train.settings.resolve import settings_of_run
from busso.train.settings.saved import value_at

log = logging.getLogger("train")

# From here on two threads, which make 1.7 times the updates of one; two workers play the games that these need.
# More threads were not measured: docs/explanation/performance.md.
CPUS_FOR_TWO = 4


def with_one_if_forked(settings: TrainSettings) -> TrainSettings:
    """The settings with one thread in a process that was forked, where PyTorch's do not work."""
    if not forked[0]:
        return settings
    if settings.learner.cpu_threads > 1:
        log.warning("learner.threads: 1 in a forked process; use multiprocessing's start method spawn for more")
    return replace(settings, learner=replace(settings.learner, threads=1))


def with_learner_threads(settings: TrainSettings) -> TrainSettings:
    """The settings of a learner on CPUs with a number in place of `auto`.

    With `rollout=local`, whose bits follow the number, a resumed run keeps that of its last start.
    """
    if settings.learner.threads != AUTO:
        return settings
    threads = _kept(settings) if settings.rollout.kind == "local" else _beside_workers(settings.rollout)
    return replace(settings, learner=replace(settings.learner, threads=threads))


def _kept(settings: TrainSettings) -> int:
    """The number of the run's last start, if there are as many CPUs; else 1."""
    threads = value_at(settings_of_run(settings.folder), "learner.threads")
    return threads if isinstance(threads, int) and 1 <= threads <= resources.cpus() else 1


def _beside_workers(rollout: RolloutSettings) -> int:
    """Two, if this node has CPUs for them beside the workers that the settings ask for; else 1."""
    workers = -(-(rollout.workers or 1) // rollout.nodes)
    return 2 if resources.cpus() >= max(CPUS_FOR_TWO, workers + 2) else 1
