"""Ray actor: a rollout worker, which also evaluates.

The driver forwards arguments and results as bytes, so it needs neither PyTorch nor the games; actors import them.
"""

import pickle
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import ray

from busso.train.rollout.ray.messages import HEALTH, Arrays, WeightArrays
from busso.train.rollout.request import Rollout, RolloutRequest, Weights

if TYPE_CHECKING:
    from busso.train.rollout.worker import Evaluator
    from busso.train.settings.dqn import TrainSettings


def _tensors(arrays: WeightArrays) -> Weights:
    """Copy the arrays to tensors: memory in the object store is read-only."""
    import torch

    return {name: torch.from_numpy(array.copy()) for name, array in arrays.items()}


class NewestWeights:
    """Newest of the weights offered by any thread: their version and a reference to them, in a list."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._newest: tuple[int, list[Any]] = (-1, [])

    def offer(self, version: int, weights: list[Any]) -> tuple[int, list[Any]]:
        """Keep these weights if they are newer; return the newest."""
        with self._lock:  # heartbeats run in another thread than requests
            if version > self._newest[0]:
                self._newest = version, weights
            return self._newest


class WorkerActor:
    """`RolloutWorker` and `Evaluator` as an actor that receives new weights and reports progress while it plays."""

    def __init__(self, pickled_settings: bytes) -> None:
        import torch

        from busso.train.rollout.worker import RolloutWorker
        from busso.train.run.device import choose_device

        settings: TrainSettings = pickle.loads(pickled_settings)
        rollout = settings.rollout
        torch.set_num_threads(rollout.torch_threads)
        self._settings, self._device = settings, choose_device("cuda" if rollout.gpus_per_worker else "cpu")
        self._worker = RolloutWorker(settings, self._device)
        self._evaluator: Evaluator | None = None  # made for the first evaluation
        self._beats = 0  # during evaluations
        self._evaluating = False
        self._worker.play(RolloutRequest(0, 1, 0.0))  # compile the game now: the heartbeat limit does not allow for it
        self._loaded = -1
        self._newest = NewestWeights()

    @ray.method(concurrency_group=HEALTH)
    def beat(self, version: int, weights: list[Any]) -> int:
        """Return the number of rounds of moves so far, and use these weights, if newer, for the next request.

        In an evaluation, whose opponents may think for long, each number is another one.
        """
        self._newest.offer(version, weights)
        self._beats += self._evaluating
        return self._worker.rounds + self._beats

    def play(self, request: RolloutRequest, version: int, weights: list[Any]) -> tuple[Rollout, Arrays]:
        """Play a request with these weights, or newer ones received since the request was submitted."""
        newest, reference = self._newest.offer(version, weights)
        if newest > self._loaded:
            self._worker.load(newest, _tensors(ray.get(reference[0])))
            self._loaded = newest
        rollout = self._worker.play(request)
        return replace(rollout, transitions=None), list(rollout.transitions)

    def duels(self, weights: WeightArrays, opponent: str) -> bytes:
        """Return the pickled results of `Evaluator.duels` against one opponent."""
        from busso.train.rollout.worker import Evaluator

        self._evaluating = True
        try:
            self._evaluator = self._evaluator or Evaluator(self._settings, self._device)
            deals = self._settings.evaluation.deals
            return pickle.dumps(self._evaluator.duels(_tensors(weights), "evaluation", deals, only=opponent))
        finally:
            self._evaluating = False
