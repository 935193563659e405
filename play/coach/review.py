"""Review of a hand: the cost of each decision of a person, and the best action."""

from __future__ import annotations

from collections.abc import Sequence

from busso.cards.hand import Hand, Move
from busso.evaluate.review.grading import Evaluation, judged_of
from busso.play.coach.hints import Coach


def review(coach: Coach, hand: Hand, seats: Sequence[int]) -> list[Evaluation]:
    """Return the judged decisions of these seats, in order, except forced ones; empty without values."""
    judged = [judge(coach, hand, number, move) for number, move in enumerate(hand.moves) if move.seat in seats]
    return [each for each in judged if each is not None]


def judge(coach: Coach, hand: Hand, number: int, move: Move) -> Evaluation | None:
    """Return the cost of move `number`, from 0, of a hand; None for a forced move, or without values."""
    return judged_of(number, move, coach.judged(hand, number, move))


def total_cost(judged: list[Evaluation]) -> float:
    """Return the total cost of these decisions, as far as it is known."""
    return sum(each.cost or 0.0 for each in judged)
