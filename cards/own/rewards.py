"""Default rewards of any game, paid at the end: the lead over the other sides, and the win."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from busso.cards.compiled.batch import Rules
from busso.cards.compiled.jit import njit


def default_rewards(
    rules: Rules, teams: Sequence[Sequence[int]], scale: float, taken: str | None = None
) -> dict[str, Callable[..., None]]:
    """Return the rewards `result` and `win`, paid at the end of the game to each side, which is a team or a seat.

    `result` is the side's result minus the mean of the others, divided by twice `scale`; for a side alone, its result
    divided by `scale`. `win` is 1 for the side with the highest result, 0 for sides that tie for it, and -1 for the
    others; for a side alone, the sign of its result. `taken` is the field with the number of seats taken, if it varies:
    an empty seat is no side, and its 0 neither wins against losses nor counts in a mean.
    """
    seats, heads, unit = sum(map(len, teams)), np.array([min(team) for team in teams]), np.float32(scale)

    @njit
    def seated(state: Any) -> Any:
        return seats if taken is None else state[taken]

    return {
        "result": _at_end(rules, seated, heads, _ahead, unit),
        "win": _at_end(rules, seated, heads, _won, unit),
    }


def _at_end(rules: Rules, seated: Any, heads: Any, worth: Callable[..., Any], unit: Any) -> Callable[..., None]:
    """Return a reward of `worth(results of the sides, own result, unit)` for each taken seat of an ended game."""
    over, returns = rules.over, rules.returns

    @njit
    def reward(before: Any, action: int, after: Any, totals: Any) -> None:
        if over(after):
            out = np.zeros(totals.size, np.float32)
            returns(after, out)
            sides = out[heads[heads < seated(after)]]
            for seat in range(seated(after)):
                totals[seat] += worth(sides, out[seat], unit)

    return reward


@njit
def _ahead(results: Any, own: Any, unit: Any) -> Any:
    others = results.size - 1
    if others == 0:
        return own / unit
    return (own - (results.sum() - own) / np.float32(others)) / (np.float32(2.0) * unit)


@njit
def _won(results: Any, own: Any, unit: Any) -> Any:
    if results.size == 1:
        return np.sign(own)
    best, as_good = results.max(), 0
    for result in results:
        as_good += result == best
    return np.float32(-1.0) if own < best else np.float32(1.0 if as_good == 1 else 0.0)
