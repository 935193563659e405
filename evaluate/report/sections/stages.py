"""The stages of a game, by which decisions are counted: tricks of Tressette, rounds of Corellian Spike."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cards.game import States
from evaluate.report.sections.observing import Watched
from spike.state import BET, BUYING, EXCHANGE, ROUNDS
from tressette.rules import SEATS, TRICKS

_PHASES = {BET: "betting", BUYING: "buying", EXCHANGE: "exchange"}


class Stages(NamedTuple):
    """Names of stages in their order, and the one that a state is in, by number."""

    names: tuple[str, ...]
    number: Callable[[States], NDArray[np.int64]]


def _trick(states: States) -> NDArray[np.int64]:
    number: NDArray[np.int64] = states["plays"].astype(np.int64) // SEATS
    return number


def _round(states: States) -> NDArray[np.int64]:
    number: NDArray[np.int64] = states["round"].astype(np.int64) * len(_PHASES) + states["phase"]
    return number


_STAGES = {
    "tressette": Stages(tuple(f"trick {k + 1}" for k in range(TRICKS)), _trick),
    "spike": Stages(
        tuple(f"round {k}, {phase}" for k in range(ROUNDS + 1) for phase in _PHASES.values()),
        _round,
    ),
}
_WHOLE = Stages(("whole game",), lambda states: np.zeros(states.size, np.int64))


def stage_names(watched: Watched) -> tuple[str, ...]:
    """The stages of the game that was watched."""
    return _STAGES.get(watched.agent.game.name, _WHOLE).names


def stages_of(watched: Watched) -> NDArray[np.int64]:
    """The stage of each decision, by number."""
    return _STAGES.get(watched.agent.game.name, _WHOLE).number(watched.states)
