"""Speed of Tressette's default run on 8, 16 and 64 CPUs, by the formula of `busso doctor` and the rates of one CPU."""

from __future__ import annotations

from itertools import count

import torch

from busso.command.settings.compose import compose
from busso.train.doctor.scaling import CPUS, Scaling
from busso.train.dqn.learner.learner import Learner
from busso.train.dqn.network.build import build_network
from busso.train.dqn.rollout.request import Rollout, RolloutRequest
from busso.train.dqn.rollout.worker import RolloutWorker
from busso.train.settings.dqn import TrainSettings
from busso.tressette import GAME
from tests.bench.timing import report, seconds
from tests.bench.tressette import filled_replay

CPU = torch.device("cpu")


def more_cpus() -> None:
    """Report decisions/s by number of CPUs, one of which learns; single-CPU rates are in CPU seconds, without Ray."""
    settings = compose(TrainSettings, "train", ["rollout=local"])
    learner, games = settings.learner, settings.rollout.games
    worker, starts = RolloutWorker(settings, CPU), count(0, games)
    updating = Learner(
        build_network(GAME, settings),
        filled_replay(200_000, settings.target),
        learner,
        settings.target,
        CPU,
    )

    def play() -> Rollout:
        return worker.play(RolloutRequest(next(starts), games, settings.exploration.end))

    first = play()
    playing, update = seconds(play, updating.update)
    rate, share = first.decisions / playing, len(first.transitions.action) / first.decisions
    decisions = learner.batch_size / learner.samples_per_insert / share
    report("recipe_decisions", rate / 1e3, "thousand decisions/s")
    scaling = Scaling(rate, 1 / update, decisions, learner.samples_floor)
    for cpus in CPUS:
        found = scaling.on(cpus)
        more = {"updates": round(found.updates, 1), "limit": found.limit, "enough": scaling.enough()}
        report("more_cpus", found.decisions / 1e3, "thousand decisions/s", cores=cpus, **more)


FIGURES = (more_cpus,)
