"""A game of one seat as compiled functions on one record, for learning loops that do not know it is one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cards.batch import Rules
from cards.compiled.jit import njit
from cards.game import Game


class Functions(NamedTuple):
    """The compiled functions of a simulator; `data` is what it keeps beside its state record."""

    begin: Callable[..., None]  # (data, state, seed)
    over: Callable[..., bool]  # (data, state)
    index: Callable[..., int]  # (data, state) -> number of the state, from 0
    legal: Callable[..., np.uint64]  # (data, state) -> bit mask of actions
    step: Callable[..., float]  # (data, state, action) -> reward


@dataclass(frozen=True)
class Simulator:
    """Plays one episode at a time: the functions, their data, and the state record `state[1]` that they change."""

    functions: Functions
    data: Any
    state: NDArray[np.void]


def of_game(game: Game, reward: str, index: Callable[..., int]) -> Simulator:
    """The simulator of a game of one seat; `index` numbers its states. Raises ValueError for more seats."""
    if game.seats != 1:
        raise ValueError(f"{game.name} has {game.seats} seats; tabular learning is for one")
    state = np.array([game.blank])
    return Simulator(
        _game_functions(game.rules, game.rewards[reward], index), (state.copy(), np.zeros(1, np.float32)), state
    )


@cache
def _game_functions(rules: Rules, reward: Callable[..., None], number: Callable[..., int]) -> Functions:
    deal, legal_of, apply, _, over_of, _ = rules

    @njit
    def begin(data: Any, state: Any, seed: np.uint64) -> None:
        deal(state, seed)

    @njit
    def over(data: Any, state: Any) -> bool:
        return over_of(state)

    @njit
    def index(data: Any, state: Any) -> int:
        return number(state)

    @njit
    def legal(data: Any, state: Any) -> np.uint64:
        return legal_of(state)

    @njit
    def step(data: Any, state: Any, action: int) -> float:
        before, totals = data
        before[0] = state
        totals[0] = 0.0
        apply(state, action)
        reward(before[0], action, state, totals)
        return totals[0]

    return Functions(begin, over, index, legal, step)
