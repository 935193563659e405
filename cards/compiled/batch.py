"""Loops over arrays of game states, compiled for each game from its six functions."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from busso.cards.compiled.bits import has, nth_bit, popcount
from busso.cards.compiled.jit import njit
from busso.cards.compiled.splitmix import GAMMA, below, mix


class Rules(NamedTuple):
    """Six compiled functions of a game on one state record. See `busso.cards.game.Game`."""

    deal: Callable[..., None]
    legal: Callable[..., np.uint64]
    apply: Callable[..., None]
    observe: Callable[..., None]
    over: Callable[..., bool]
    returns: Callable[..., None]


class Loops(NamedTuple):
    """Batch versions of these functions over `states[games]`; outputs have one row per entry of `games`."""

    deal: Callable[..., None]
    legal: Callable[..., None]
    apply: Callable[..., None]
    observe: Callable[..., None]
    over: Callable[..., None]
    returns: Callable[..., None]


@njit
def at(states: Any, game: int) -> Any:
    """Return `states[game]`, bounds-checked: compiled code would read any address."""
    if game < 0 or game >= states.size:
        raise ValueError("no such game in the batch")
    return states[game]


@cache
def batch_loops(rules: Rules) -> Loops:  # noqa: C901 - six loops side by side
    """Compile the loops of a game; equal rules give the same compiled functions."""
    deal_one, legal_one, apply_one, observe_one, over_one, returns_one = rules

    @njit(nogil=True)
    def deal(states: Any, seeds: Any) -> None:
        for k in range(seeds.size):
            deal_one(states[k], seeds[k])

    @njit(nogil=True)
    def legal(states: Any, games: Any, out: Any) -> None:
        for k in range(games.size):
            out[k] = legal_one(at(states, games[k]))

    @njit(nogil=True)
    def apply(states: Any, games: Any, actions: Any) -> None:
        for k in range(games.size):
            apply_one(states[games[k]], actions[k])

    @njit(nogil=True)
    def observe(states: Any, games: Any, seats: Any, out: Any) -> None:
        for k in range(games.size):
            out[k, :] = np.uint64(0)
            observe_one(at(states, games[k]), seats[k], out[k])

    @njit(nogil=True)
    def over(states: Any, games: Any, out: Any) -> None:
        for k in range(games.size):
            out[k] = over_one(at(states, games[k]))

    @njit(nogil=True)
    def returns(states: Any, games: Any, out: Any) -> None:
        for k in range(games.size):
            returns_one(at(states, games[k]), out[k])

    return Loops(deal, legal, apply, observe, over, returns)


@njit
def allows(mask: np.uint64, action: int) -> bool:
    """Return whether an action, 0 to 255, is set in the mask."""
    return action <= 63 and has(mask, action)


@njit(nogil=True)
def first_illegal(masks: Any, actions: Any) -> int:
    """Return the first row whose action is not set in its mask, or -1."""
    for k in range(actions.size):
        if not allows(masks[k], actions[k]):
            return k
    return -1


@cache
def reward_loop(apply_one: Callable[..., None], reward_one: Callable[..., None]) -> Callable[..., None]:
    """Compile `Loops.apply` that also adds each seat's reward for the action to `totals`, `[games, seats]`."""

    @njit(nogil=True)
    def apply_rewarded(states: Any, games: Any, actions: Any, totals: Any) -> None:
        before = states[:1].copy()
        for k in range(games.size):
            game = games[k]
            before[0] = states[game]
            apply_one(states[game], actions[k])
            reward_one(before[0], actions[k], states[game], totals[game])

    return apply_rewarded


@njit
def next_bits(generators: Any, game: int) -> np.uint64:
    """Advance the generator of this game and return its next 64 random bits."""
    generators[game] += GAMMA
    return mix(generators[game])


@cache
def policy_loop(policy: Callable[..., int]) -> Callable[..., None]:
    """Compile a scalar policy `(state, random_bits) -> action` over `states[games]`, with one generator per game."""

    @njit(nogil=True)
    def act(states: Any, games: Any, generators: Any, out: Any) -> None:
        for k in range(games.size):
            out[k] = policy(states[games[k]], next_bits(generators, games[k]))

    return act


@njit
def random_legal(mask: np.uint64, random_bits: np.uint64) -> int:
    """Draw one of the set bits of `mask`, uniformly."""
    return nth_bit(mask, below(random_bits, popcount(mask)))
