"""Compiled steps of one game, whose cost is the number of calls from Python, and seeds of the games that follow."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from busso.cards.compiled.batch import Rules, allows
from busso.cards.compiled.bits import unpack_into
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, mix

Seeds = NDArray[np.uint64]
# Result of a step: the seat to move in the lowest bits, and these flags.
TURN, OVER, EARNED = 255, 256, 512
ILLEGAL = -1


def later_seeds(first: Seeds, numbers: Seeds) -> Seeds:
    """Return the seed of game `numbers[k]` after that of `first[k]`, from splitmix64's stream; game 0 is the first."""
    return np.where(numbers == 0, first, mix(first + numbers * GAMMA))


@njit
def later_seed(first: np.uint64, number: np.uint64) -> np.uint64:
    """Return one such seed."""
    return first if number == np.uint64(0) else mix(first + number * GAMMA)


class Steps(NamedTuple):
    """Compiled functions on one game.

    They share these arguments, and modify all but `seed`, `action` and `seat`: `states` `[2]`, the game and a buffer
    for its previous state; `words` `[1, words]`, `observation` `[1, bits]` and `mask` `[1, actions]`, the view and the
    legal actions of the seat to move, as 0 and 1; `totals` `[seats]`, the rewards of the step.

    - `deal(states, seed, words, observation, mask, totals)`: deal a new game; returns OVER if the deal decides it;
    - `step(states, action, words, observation, mask, totals)`: play an action of the seat to move; returns ILLEGAL, and
      changes nothing, if it is illegal or the game is over;
    - `see(states, seat, words, observation)`: write a seat's observation.
    """

    deal: Callable[..., int]
    step: Callable[..., int]
    see: Callable[..., None]


@cache
def steps(rules: Rules, reward: Callable[..., None]) -> Steps:
    """Compile the functions of a game; equal rules and reward give the same functions."""
    deal_one, legal_one, apply_one, observe_one, over_one, _ = rules

    @njit
    def see(states: Any, seat: int, words: Any, observation: Any) -> None:
        words[:] = np.uint64(0)
        observe_one(states[0], seat, words[0])
        unpack_into(words, observation)

    @njit
    def look(states: Any, words: Any, observation: Any, mask: Any, totals: Any) -> int:
        state = states[0]
        see(states, state.turn, words, observation)
        words[0, 0] = legal_one(state)
        unpack_into(words, mask)
        said = int(state.turn)
        if over_one(state):
            said |= OVER
        for total in totals:
            if total != 0:
                said |= EARNED
        return said

    @njit
    def deal(states: Any, seed: np.uint64, words: Any, observation: Any, mask: Any, totals: Any) -> int:
        deal_one(states[0], seed)
        totals[:] = 0
        if over_one(states[0]):
            reward(states[0], 0, states[0], totals)
        return look(states, words, observation, mask, totals)

    @njit
    def step(states: Any, action: int, words: Any, observation: Any, mask: Any, totals: Any) -> int:
        if not allows(legal_one(states[0]), action):
            return ILLEGAL
        totals[:] = 0
        states[1] = states[0]
        apply_one(states[0], action)
        reward(states[1], action, states[0], totals)
        return look(states, words, observation, mask, totals)

    return Steps(deal, step, see)


@cache
def settle_loop(rules: Rules, reward: Callable[..., None]) -> Callable[..., None]:
    """Compile a loop that adds the rewards of games decided by the deal to `totals`, `[games, seats]`."""
    over_one = rules.over

    @njit(nogil=True)
    def settle(states: Any, games: Any, totals: Any) -> None:
        for k in range(games.size):
            state = states[games[k]]
            if over_one(state):
                reward(state, 0, state, totals[games[k]])

    return settle
