"""Rollout backends: the interface that a trainer uses, and the backend of its own process."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Protocol

import torch

from busso.cards.matches.duplicate import Duel
from busso.cards.stopping import Stop, StoppedError
from busso.command.errors import UserError
from busso.train.dqn.rollout.evaluator import Evaluator
from busso.train.dqn.rollout.request import Rollout, RolloutRequest, Weights
from busso.train.dqn.rollout.worker import RolloutWorker
from busso.train.run.signals import EXIT_REQUEUE
from busso.train.settings.dqn import TrainSettings


class BackendLostError(UserError):
    """The workers are gone; the message says why, and the run resumes from its checkpoint."""

    exit_code = EXIT_REQUEUE

    def hopeless(self) -> BackendLostError:
        """The same for a run whose starts get nowhere: a job script does not start it again."""
        error = BackendLostError(self.key, self, "but this start made no progress, and neither would the next")
        error.exit_code = 1
        return error


class RolloutBackend(Protocol):
    """Backend that plays requests: in this process (`LocalBackend`) or by Ray (`busso.train.dqn.rollout.ray`)."""

    def wants_weights(self) -> bool:
        """Return whether newer weights may be published now."""

    def publish(self, version: int, weights: Weights) -> None:
        """Requests submitted from now on are played with these weights."""

    def workers(self) -> int:
        """Number of workers beside the learner."""

    def free_slots(self) -> int:
        """Return the number of requests that may be submitted now."""

    def submit(self, request: RolloutRequest) -> None:
        """Submit a request."""

    def ready(self, wait: bool) -> list[Rollout]:
        """The rollouts that are done, each once; with `wait`, at least one, or none after a second."""

    def evaluate(self, tag: int, weights: Weights, stop_requested: Stop) -> None:
        """Start an evaluation of these weights; `tag` comes back with its result, unless a stop request ends it."""

    def evaluated(self, wait: bool) -> Iterable[tuple[int, dict[str, Duel]]]:
        """The evaluations that are done, each once; with `wait`, at least one, or none after a second."""

    def describe(self, stop_requested: Stop) -> str:
        """Describe the workers in one line; a stop request ends the wait for them."""

    def close(self) -> None:
        """Give back processes and memory, in the middle of games and evaluations."""


class LocalBackend:
    """Plays every request at once in the learner's process: no Ray, and the same bits for the same seed."""

    def __init__(self, settings: TrainSettings, device: torch.device) -> None:
        self._worker = RolloutWorker(settings, device)
        self._evaluator = Evaluator(settings, device)
        self._deals = settings.evaluation.deals
        self._done: list[Rollout] = []
        self._evaluations: list[tuple[int, dict[str, Duel]]] = []

    def wants_weights(self) -> bool:
        """Every request is played with the newest."""
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
