"""A hand looked at again: what each decision of a person cost, and what was best."""

from __future__ import annotations

from dataclasses import dataclass

from play.hand import Hand, Move
from play.hints import Coach, Worth


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


def review(coach: Coach, hand: Hand, seats: list[int]) -> list[Judged]:
    """The decisions of these seats in which there was a choice, in their order; none where nobody can judge them."""
    judged = [judge(coach, hand, number, move) for number, move in enumerate(hand.moves) if move.seat in seats]
    return [each for each in judged if each is not None]


def judge(coach: Coach, hand: Hand, number: int, move: Move) -> Judged | None:
    """What move `number`, from 0, of a hand cost; None where there was no choice, or nobody can judge it."""
    worths = coach.judged(hand, number, move)
    if len(worths) < 2:
        return None
    played = next(each.value for each in worths if each.action == move.action)
    best = worths[0].value
    cost = None if played is None or best is None else best - played
    return Judged(number + 1, move.seat, move.action, tuple(worths), cost)


def total_cost(judged: list[Judged]) -> float:
    """What these decisions cost together, as far as it is known."""
    return sum(each.cost or 0.0 for each in judged)
