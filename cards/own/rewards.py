"""Rewards that any game has: what a side has more than the others at the end, and who has most."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from busso.cards.compiled.batch import Rules
from busso.cards.compiled.jit import njit


def default_rewards(rules: Rules, teams: Sequence[Sequence[int]], scale: float) -> dict[str, Callable[..., None]]:
    """Return the rewards `result` and `win`, paid at the end of the game to each side, which is a team or a seat.

    `result` is what the side has more than the others on average, over twice `scale`; for one seat alone, what it has
    over `scale`. `win` is 1 for the side that has most, 0 for those that share this, -1 for the others; for one seat
    alone the sign of what it has.
    """
    side_of = np.zeros(sum(map(len, teams)), np.int64)  # of each seat
    for number, team in enumerate(teams):
        side_of[list(team)] = number
    heads, unit = np.array([team[0] for team in teams]), np.float32(scale)
    return {
        "result": _at_end(rules, side_of, heads, _ahead, unit),
        "win": _at_end(rules, side_of, heads, _won, unit),
    }


def _at_end(rules: Rules, side_of: Any, heads: Any, worth: Callable[..., Any], unit: Any) -> Callable[..., None]:
    """Return a reward of `worth(results of the sides, side, unit)` for each seat of an ended game."""
    over, returns = rules.over, rules.returns

    @njit
    def reward(before: Any, action: int, after: Any, totals: Any) -> None:
        if over(after):
            out = np.zeros(side_of.size, np.float32)
            returns(after, out)
            for seat in range(side_of.size):
                totals[seat] += worth(out[heads], side_of[seat], unit)

    return reward


@njit
def _ahead(results: Any, side: int, unit: Any) -> Any:
    own, others = results[side], results.size - 1
    if others == 0:
        return own / unit
    return (own - (results.sum() - own) / np.float32(others)) / (np.float32(2.0) * unit)


@njit
def _won(results: Any, side: int, unit: Any) -> Any:
    if results.size == 1:
        return np.sign(results[0])
    best, as_good = results.max(), 0
    for result in results:
        as_good += result == best
    return np.float32(-1.0) if results[side] < best else np.float32(1.0 if as_good == 1 else 0.0)
