"""Steps of one game by one compiled call: the cost of a step is the number of calls from Python."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from busso.cards.compiled.batch import Rules, allows
from busso.cards.compiled.bits import unpack_into
from busso.cards.compiled.jit import njit

# What a step says: the seat to move in the lowest bits, and these.
TURN, OVER, EARNED = 255, 256, 512
ILLEGAL = -1


class Steps(NamedTuple):
    """Functions on one game.

    Arguments that they share, of which all but `seed`, `action` and `seat` are changed:

    `states` `[2]`: the game, and room for what it was before; `words` `[1, words]`, `observation` `[1, bits]` and
    `mask` `[1, actions]`: what the seat to move sees and may do, 0 and 1; `totals` `[seats]`: what each has earned.

    - `deal(states, seed, words, observation, mask, totals)`: a new game; says OVER where the deal has decided it;
    - `step(states, action, words, observation, mask, totals)`: one action of the seat to move; ILLEGAL, and nothing
      has changed, if it may not do that, or the game is over;
    - `see(states, seat, words, observation)`: what a seat sees.
    """

    deal: Callable[..., int]
    step: Callable[..., int]
    see: Callable[..., None]


@cache
def steps(rules: Rules, reward: Callable[..., None]) -> Steps:
    """Compile the functions of a game; the same rules and reward give the same ones."""
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
    """Pays what games that the deal has decided have earned their seats, to `totals[games]` (`[games, seats]`)."""
    over_one = rules.over

    @njit(nogil=True)
    def settle(states: Any, games: Any, totals: Any) -> None:
        for k in range(games.size):
            state = states[games[k]]
            if over_one(state):
                reward(state, 0, state, totals[games[k]])

    return settle
