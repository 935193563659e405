"""Corellian Spike so small that all of its chance can be listed: the rules, observation and rewards of `spike`.

Two seats, one hand, few credits; the game of a seed is deal `seed % DEALS` of a list, all equally likely.
"""

import dataclasses
from typing import Any

import numpy as np
from reduced_spike.rules import RULES, Options, blank

from busso import spike


def record(start: np.void, actions: list[int]) -> dict[str, Any]:
    """The record of a game; see `busso.spike.records`."""
    return spike.GAME.record(start, actions) | {"game": "reduced_spike"}


GAME = dataclasses.replace(
    spike.GAME,
    name="reduced_spike",
    blank_for=blank,
    options=Options(),
    rules=RULES,
    kinds={},
    varying=None,
    record=record,
    numbering=None,
)
