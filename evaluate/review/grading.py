"""A graded decision: its cost against the best action, and the grade for that cost.

Grades are for what a seat knew, never for the result: a best action that lost stays the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from busso.cards.game import Game
from busso.cards.hand import Move
from busso.command.settings.checks import SettingsError
from busso.evaluate.review.advisers import Worth

BEST, FINE, MISTAKE, BLUNDER = "best", "fine", "mistake", "blunder"
GRADES = (BEST, FINE, MISTAKE, BLUNDER)


@dataclass(frozen=True)
class Judged:
    """A decision: the number of the move, from 1, what was played, and what all legal actions were worth, best first.

    `cost` is what the best was worth above it, for what the seat knew; None where that is not known.
    """

    number: int
    seat: int
    action: int
    worths: tuple[Worth, ...]
    cost: float | None

    @property
    def best(self) -> Worth:
        """The best action; what was played, if it was as good."""
        return next(each for each in self.worths if self.cost != 0 or each.action == self.action)


def judged_of(number: int, move: Move, worths: Sequence[Worth]) -> Judged | None:
    """Move `number`, from 0, by what the actions were worth, best first; None where there was no choice."""
    if len(worths) < 2:
        return None
    played = next(each.value for each in worths if each.action == move.action)
    best = worths[0].value
    cost = None if played is None or best is None else best - played
    return Judged(number + 1, move.seat, move.action, tuple(worths), cost)


@dataclass(frozen=True)
class Limits:
    """The greatest costs that are still `best`, `fine` and a `mistake`, in the unit of the values; beyond, a blunder.

    Raises SettingsError unless they rise.
    """

    best: float
    fine: float
    mistake: float

    def __post_init__(self) -> None:
        if not 0 <= self.best <= self.fine <= self.mistake < float("inf"):
            raise SettingsError("grades", f"three costs that rise, as [0.1,0.34,1], not {[*vars(self).values()]}")

    def grade(self, cost: float) -> str:
        """The grade of a decision that cost so much."""
        if cost <= self.best:
            return BEST
        return FINE if cost <= self.fine else MISTAKE if cost <= self.mistake else BLUNDER


def limits_of(game: Game, unit: str) -> Limits:
    """Return the default limits of the grades: steps that the game itself has.

    - points of Tressette: an honour is a third of a point and an ace a whole one, so a mistake gives away more than an
      honour, a blunder more than an ace; 0.1 is what 256 sampled hands cannot tell apart;
    - credits of Spike: a blunder costs more than a raise (the option `bet`), a mistake more than a quarter of one;
    - the result of a small game, from -1 to 1, is exact: 0.02 and 0.1 are 1 and 5 wins in a hundred; `wins` is the
      same for sampled values.
    """
    if unit.startswith("points"):
        return Limits(0.1, 0.34, 1.0)
    if unit == "credits":
        bet = float(getattr(game.options, "bet", 2))
        return Limits(0.05 * bet, 0.25 * bet, bet)
    return Limits(0.0005, 0.02, 0.1) if unit == "result" else Limits(0.02, 0.06, 0.2)
