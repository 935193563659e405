"""Ray actors that play nothing: real Ray, and rollouts of a size and rate of choice, without PyTorch."""

import itertools
import pickle
import time
from typing import Any

import numpy as np
import ray

from train.dqn.rollout.ray.messages import Arrays, WeightArrays
from train.dqn.rollout.ray.pool import HEALTH
from train.dqn.rollout.request import EpisodeReturn, Rollout, RolloutRequest


class WorkerActor:
    """Sleeps instead of playing.

    Its settings are the transitions of some games, how many games, and the seconds that these would take to play; a
    request for fewer gets its share of both.
    """

    def __init__(self, pickled: bytes) -> None:
        self._arrays, self._games, self._seconds = pickle.loads(pickled)
        self._rounds = itertools.count()
        self._newest: tuple[int, list[Any]] = (-1, [])
        self._loaded = -1

    @ray.method(concurrency_group=HEALTH)
    def beat(self, version: int, weights: list[Any]) -> int:
        """As `train.dqn.rollout.ray.actors.WorkerActor`."""
        self._newest = max(self._newest, (version, weights), key=lambda pair: pair[0])
        return next(self._rounds)

    def play(
        self, request: RolloutRequest, version: int, weights: list[Any], member: list[Any]
    ) -> tuple[Rollout, Arrays]:
        """As `train.dqn.rollout.ray.actors.WorkerActor`, the weights included."""
        self._newest = max(self._newest, (version, weights), key=lambda pair: pair[0])
        newest, reference = self._newest
        if newest > self._loaded:
            self._loaded = newest
            sum(array.nbytes for array in ray.get(reference[0]).values())
        share = min(1.0, request.count / self._games)
        time.sleep(self._seconds * share)
        rollout = Rollout(request, None, newest, EpisodeReturn(0.0, 0.0))
        return rollout, [np.array(array[: round(share * len(array))]) for array in self._arrays]


class EvaluatorActor:
    """There is nothing to evaluate."""

    def __init__(self, pickled: bytes) -> None:
        self._rounds = itertools.count()

    @ray.method(concurrency_group=HEALTH)
    def beat(self, version: int, weights: list[Any]) -> int:
        """As `train.dqn.rollout.ray.actors.EvaluatorActor`."""
        return next(self._rounds)

    def duels(self, weights: WeightArrays) -> bytes:
        """None."""
        return pickle.dumps({})
