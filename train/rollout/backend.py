"""Rollout backends: the trainer's interface, and the backend in its own process."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

import torch

from busso.base.errors import EXIT_REQUEUE, UserError
from busso.cards.duplicate import Duel
from busso.cards.play import Stop, StoppedError
from busso.train.rollout.request import Rollout, RolloutRequest, Weights
from busso.train.rollout.worker import Evaluator, RolloutWorker
from busso.train.settings.dqn import TrainSettings


class BackendLostError(UserError):
    """Loss of the workers; the message gives the reason, and the run can resume from its checkpoint."""

    exit_code = EXIT_REQUEUE

    def hopeless(self) -> BackendLostError:
        """Return this error for a run whose starts make no progress, so that a job script does not retry."""
        error = BackendLostError(self.key, self, "but this start made no progress, and neither would the next")
        error.exit_code = 1
        return error


class RolloutBackend(Protocol):
    """Interface of a backend that plays requests in this process (`LocalBackend`) or through Ray (`RayBackend`)."""

    @property
    def concurrent(self) -> bool:
        """True if workers play while the learner updates, and may have to wait for it."""

    def wants_weights(self) -> bool:
        """Return whether newer weights may be published now."""

    def publish(self, version: int, weights: Weights) -> None:
        """Use these weights for requests submitted from now on."""

    def workers(self) -> int:
        """Return the number of workers other than the learner."""

    def free_slots(self) -> int:
        """Return the number of requests that may be submitted now."""

    def submit(self, request: RolloutRequest) -> None:
        """Submit a request."""

    def ready(self, wait: bool) -> list[Rollout]:
        """Return the finished rollouts, each once; with `wait`, wait up to a second for one."""

    def evaluate(self, tag: int, weights: Weights, stop_requested: Stop) -> None:
        """Start evaluating these weights; its result has this `tag`, unless a stop request ends it."""

    def evaluated(self, wait: bool) -> Iterable[tuple[int, dict[str, Duel]]]:
        """Return the finished evaluations, each once; with `wait`, wait up to a second for one."""

    def describe(self, stop_requested: Stop) -> str:
        """Describe the workers in one line, after waiting for them unless a stop is requested."""

    def close(self) -> None:
        """Release processes and memory, even during games and evaluations."""


class LocalBackend:
    """Backend that plays requests immediately in the learner's process: no Ray; the same seed gives the same bits."""

    concurrent = False

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._worker = RolloutWorker(settings, device)
        self._evaluator = Evaluator(settings, device)
        self._deals = settings.evaluation.deals
        self._done: list[Rollout] = []
        self._evaluations: list[tuple[int, dict[str, Duel]]] = []

    def wants_weights(self) -> bool:
        """Return True: every request is played with the newest weights."""
        return True

    def publish(self, version: int, weights: Weights) -> None:
        self._worker.load(version, weights)

    def workers(self) -> int:
        return 0

    def free_slots(self) -> int:
        return 1 - len(self._done)

    def submit(self, request: RolloutRequest) -> None:
        self._done.append(self._worker.play(request))

    def ready(self, wait: bool) -> list[Rollout]:
        done, self._done = self._done, []
        return done

    def evaluate(self, tag: int, weights: Weights, stop_requested: Stop) -> None:
        with suppress(StoppedError):
            self._evaluations.append((tag, self._evaluator.duels(weights, "evaluation", self._deals, stop_requested)))

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        done, self._evaluations = self._evaluations, []
        return done

    def describe(self, stop_requested: Stop) -> str:
        return "local: games run in the learner's process"

    def close(self) -> None:
        """See `RolloutBackend`."""
