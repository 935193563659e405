"""Weights of a worker actor, which heartbeats and requests offer from two threads."""

import threading
from typing import Any

import pytest

from busso.train.rollout.ray.actors import NewestWeights

pytestmark = pytest.mark.ray


def test_newer_weights_that_come_meanwhile_are_kept() -> None:
    """A heartbeat arrives while a request's older weights are compared with those kept."""
    newest = NewestWeights()
    heartbeat = threading.Thread(target=newest.offer, args=(2, ["newer"]))

    class Version(int):
        def __gt__(self, other: int) -> bool:
            heartbeat.start()
            heartbeat.join(timeout=0.2)  # it waits for this comparison
            return int(self) > other

    newest.offer(Version(1), ["older"])
    heartbeat.join()
    kept: tuple[int, list[Any]] = newest.offer(0, ["oldest"])
    assert kept == (2, ["newer"])
