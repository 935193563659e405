"""RolloutBackend of two: threads beside the learner, and Ray workers on the other nodes of the cluster. No Ray here."""

from __future__ import annotations

import time
from dataclasses import replace

import torch

from cards.matches.duplicate import Duel
from cards.stopping import Stop
from train.dqn.rollout.backend import RolloutBackend
from train.dqn.rollout.ray.backend import WAIT_SECONDS, RayBackend
from train.dqn.rollout.request import Rollout, RolloutRequest, Weights
from train.dqn.rollout.threads import ThreadsBackend
from train.settings.dqn import CPU_GAMES, TrainSettings

_LOOK_SECONDS = 0.005


def threads_and_ray(settings: TrainSettings, device: torch.device) -> HybridBackend:
    """Both for a run on several nodes; Ray's workers, which compute on CPUs, play fewer games at a time."""
    rollout = settings.rollout
    games = min(rollout.games_on(device.type == "cuda"), CPU_GAMES)
    of_ray = replace(settings, rollout=replace(rollout, kind="ray", games=games))
    there = RayBackend(of_ray, elsewhere=True)  # first: it starts while the networks are made
    try:
        return HybridBackend(ThreadsBackend(settings, device), there)
    except BaseException:
        there.close()
        raise


class HybridBackend:
    """Requests go `here` as long as there is room, else `there`; `here` evaluates. What ends one ends the run.

    See `RolloutBackend` for the methods.
    """

    def __init__(self, here: RolloutBackend, there: RolloutBackend) -> None:
        self._here, self._there = here, there

    def wants_weights(self) -> bool:
        return self._here.wants_weights() or self._there.wants_weights()

    def publish(self, version: int, weights: Weights) -> None:
        """Each gets them as often as it wants them."""
        for rollouts in (self._here, self._there):
            if rollouts.wants_weights():
                rollouts.publish(version, weights)

    def enrol(self, members: dict[int, Weights]) -> None:
        for rollouts in (self._here, self._there):
            rollouts.enrol(members)

    def workers(self) -> int:
        return self._here.workers() + self._there.workers()

    def games(self) -> int:
        """That of the backend which gets it."""
        return self._next().games()

    def free_slots(self) -> int:
        return self._here.free_slots() + self._there.free_slots()

    def submit(self, request: RolloutRequest) -> None:
        self._next().submit(request)

    def _next(self) -> RolloutBackend:
        return self._here if self._here.free_slots() > 0 else self._there

    def ready(self, wait: bool) -> list[Rollout]:
        end = time.monotonic() + WAIT_SECONDS
        while True:
            # What is lost there is known before what is done here is taken: nothing is forgotten.
            done = self._there.ready(wait=False)
            done += self._here.ready(wait=False)
            if done or not wait or time.monotonic() > end:
                return done
            time.sleep(_LOOK_SECONDS)

    def evaluate(self, tag: int, weights: Weights, stop_requested: Stop) -> None:
        self._here.evaluate(tag, weights, stop_requested)

    def evaluated(self, wait: bool) -> list[tuple[int, dict[str, Duel]]]:
        return list(self._here.evaluated(wait))

    def describe(self, stop_requested: Stop) -> str:
        return f"{self._here.describe(stop_requested)}; beside them {self._there.describe(stop_requested)}"

    def close(self) -> None:
        try:
            self._here.close()
        finally:
            self._there.close()
