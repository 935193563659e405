"""Costs of decisions against the best action, and grades for costs, which never depend on the result of the game."""

from collections.abc import Sequence
from dataclasses import dataclass

from busso.cards.game import Game
from busso.cards.hand import Move
from busso.command.settings.checks import SettingsError
from busso.evaluate.review.advisers import ActionValue

BEST, FINE, MISTAKE, BLUNDER = "best", "fine", "mistake", "blunder"
GRADES = (BEST, FINE, MISTAKE, BLUNDER)


@dataclass(frozen=True)
class Evaluation:
    """A decision: number of the move, from 1, action played, and values of all legal actions, best first.

    `cost` is the difference from the best action's value; None if either is unknown.
    """

    number: int
    seat: int
    action: int
    worths: tuple[ActionValue, ...]
    cost: float | None

    @property
    def best(self) -> ActionValue:
        """Best action; among equals the one that was played."""
        return next(each for each in self.worths if self.cost != 0 or each.action == self.action)


def judged_of(number: int, move: Move, worths: Sequence[ActionValue]) -> Evaluation | None:
    """Return the judgement of move `number`, from 0, given the values, best first; None for a forced move."""
    if len(worths) < 2:
        return None
    played = next(each.value for each in worths if each.action == move.action)
    best = worths[0].value
    cost = None if played is None or best is None else best - played
    return Evaluation(number + 1, move.seat, move.action, tuple(worths), cost)


@dataclass(frozen=True)
class Limits:
    """Greatest costs of `best`, `fine` and `mistake`, in the values' unit. Raises SettingsError unless they ascend."""

    best: float
    fine: float
    mistake: float

    def __post_init__(self) -> None:
        if not 0 <= self.best <= self.fine <= self.mistake < float("inf"):
            raise SettingsError("grades", f"three increasing costs, as [0.1,0.34,1], not {[*vars(self).values()]}")

    def grade(self, cost: float) -> str:
        """Return the grade for a cost."""
        if cost <= self.best:
            return BEST
        return FINE if cost <= self.fine else MISTAKE if cost <= self.mistake else BLUNDER


def limits_of(game: Game, unit: str) -> Limits:
    """Return the default limits of the grades, in natural steps of the game.

    - Points of Tressette: a mistake gives away more than an honour (1/3 point), a blunder more than an ace (1 point);
      256 sampled hands cannot resolve 0.1.
    - Credits of Spike: a blunder costs more than a raise (the option `bet`), a mistake more than a quarter of one.
    - Exact results of a small game, from -1 to 1: 0.02 and 0.1 are 1 and 5 wins in a hundred. `wins` are sampled values
      of the same kind, with wider limits.
    """
    if unit.startswith("points"):
        return Limits(0.1, 0.34, 1.0)
    if unit == "credits":
        bet = float(getattr(game.options, "bet", 2))
        return Limits(0.05 * bet, 0.25 * bet, bet)
    return Limits(0.0005, 0.02, 0.1) if unit == "result" else Limits(0.02, 0.06, 0.2)
