"""What runs in the processes of a Ray cluster: a rollout worker, and the evaluator."""

from __future__ import annotations

import itertools
import os

import ray
import torch

from cards.duplicate import Duel
from train.config import TrainSettings
from train.rollout import Evaluator, Rollout, RolloutWorker, Ticket, Weights

HEALTH = "health"  # the concurrency group that answers while an actor plays


def _device(gpus: float) -> torch.device:
    return torch.device("cuda" if gpus > 0 else "cpu")


class WorkerActor:
    """`RolloutWorker` as an actor. It takes new weights and says how far it is while it plays."""

    def __init__(self, settings: TrainSettings) -> None:
        torch.set_num_threads(settings.rollout.threads)
        self._worker = RolloutWorker(settings, _device(settings.rollout.gpus_per_worker))
        self._worker.play(Ticket(0, 1, 0.0))  # compiles the game, so that a heartbeat need not allow for it
        self._newest: tuple[int, Weights | None] = (-1, None)

    @ray.method(concurrency_group=HEALTH)
    def take(self, version: int, weights: Weights) -> None:
        """Play the next ticket with these weights, if they are the newest."""
        self._newest = max(self._newest, (version, weights), key=lambda pair: pair[0])

    @ray.method(concurrency_group=HEALTH)
    def beat(self) -> int:
        """How many rounds of moves have been played."""
        return self._worker.rounds

    def play(self, ticket: Ticket, version: int, weights: Weights) -> Rollout:
        """Play a ticket with these weights, or newer ones that came since it was submitted."""
        newest, newest_weights = self._newest
        if newest_weights is not None and newest > version:
            version, weights = newest, newest_weights
        self._worker.load(version, weights)
        return self._worker.play(ticket)

    def pid(self) -> int:
        """Of the actor's process."""
        return os.getpid()


class EvaluatorActor:
    """`Evaluator` as an actor. Its heartbeat says that it is alive, not how far it is."""

    def __init__(self, settings: TrainSettings) -> None:
        torch.set_num_threads(1)
        self._evaluator = Evaluator(settings, torch.device("cpu"))
        self._deals = settings.evaluation.deals
        self._beats = itertools.count()

    @ray.method(concurrency_group=HEALTH)
    def beat(self) -> int:
        """Something else with every answer."""
        return next(self._beats)

    def duels(self, weights: Weights) -> dict[str, Duel]:
        """See `Evaluator.duels`."""
        return self._evaluator.duels(weights, "evaluation", self._deals)
