"""Ray actors that play nothing: real Ray, and rollouts of the usual size at a rate of choice, without PyTorch."""

import itertools
import pickle
import time
from typing import Any

import numpy as np
import ray

from train.dqn.cluster.messages import Arrays, RequestFields, WeightArrays
from train.dqn.cluster.pool import HEALTH


class WorkerActor:
    """Sleeps instead of playing. Its settings are the transitions to give and the seconds that a request takes."""

    def __init__(self, pickled: bytes) -> None:
        self._arrays, self._seconds = pickle.loads(pickled)
        self._rounds = itertools.count()
        self._newest: tuple[int, list[Any]] = (-1, [])
        self._loaded = -1

    @ray.method(concurrency_group=HEALTH)
    def beat(self, version: int, weights: list[Any]) -> int:
        """As `train.dqn.cluster.actors.WorkerActor`."""
        self._newest = max(self._newest, (version, weights), key=lambda pair: pair[0])
        return next(self._rounds)

    def play(self, request: RequestFields, version: int, weights: list[Any]) -> tuple[dict[str, Any], Arrays]:
        """As `train.dqn.cluster.actors.WorkerActor`, the weights included."""
        self._newest = max(self._newest, (version, weights), key=lambda pair: pair[0])
        newest, reference = self._newest
        if newest > self._loaded:
            self._loaded = newest
            sum(array.nbytes for array in ray.get(reference[0]).values())
        time.sleep(self._seconds)
        about = {"request": request, "weights_version": newest, "episode_return": 0.0}
        return about, [np.array(array) for array in self._arrays]


class EvaluatorActor:
    """There is nothing to evaluate."""

    def __init__(self, pickled: bytes) -> None:
        self._rounds = itertools.count()

    @ray.method(concurrency_group=HEALTH)
    def beat(self, version: int, weights: list[Any]) -> int:
        """As `train.dqn.cluster.actors.EvaluatorActor`."""
        return next(self._rounds)

    def duels(self, weights: WeightArrays) -> bytes:
        """None."""
        return pickle.dumps({})
