"""Default rewards of any game, paid at the end: the lead over the other sides, and the win."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from busso.cards.compiled.batch import Rules
from busso.cards.compiled.jit import njit


def default_rewards(rules: Rules, teams: Sequence[Sequence[int]], scale: float) -> dict[str, Callable[..., None]]:
    """Return the rewards `result` and `win`, paid at the end of the game to each side, which is a team or a seat.

    `result` is the side's result minus the mean of the others, divided by twice `scale`; in a game of one seat, its
    result divided by `scale`. `win` is 1 for the side with the highest result, 0 for sides that tie for it, and -1 for
    the others; in a game of one seat, the sign of its result.
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
