"""Results of a review: decisions of each hand, and grades counted by seat or player."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from busso.cards.hand import Hand
from busso.cards.presentation import Row, presentation_of
from busso.evaluate.recorded import InvalidRecord, RecordedHand
from busso.evaluate.review.grader import Grader
from busso.evaluate.review.grading import BEST, Evaluation


@dataclass(frozen=True)
class Decision:
    """A decision with what the seat saw and its grade, None if its cost is unknown."""

    judged: Evaluation
    grade: str | None
    board: tuple[Row, ...]


@dataclass(frozen=True)
class ReviewedHand:
    """A hand of the file with the decisions that had a choice."""

    recorded: RecordedHand
    grader: Grader
    decisions: list[Decision]
    seats: tuple[int, ...]  # graded seats

    @property
    def hand(self) -> Hand:
        """Hand that was graded."""
        return self.recorded.hand

    def who(self, seat: int) -> str:
        """Return the name of a seat's player, or `seat N` if the record has no names."""
        return self.recorded.names[seat] if self.recorded.names else f"seat {seat}"

    def action(self, action: int) -> str:
        """Return the short name of an action."""
        return presentation_of(self.hand.game).short(self.hand.game.action_text(action))


Reviewed = ReviewedHand | InvalidRecord


@dataclass
class Tally:
    """Row of the summary: decisions of one seat or player in a game. `lost` is in `unit`."""

    game: str
    who: str
    unit: str
    hands: int = 0
    grades: Counter[str] = field(default_factory=Counter)
    unknown: int = 0
    lost: float = 0.0

    @property
    def decisions(self) -> int:
        """Number of graded decisions."""
        return sum(self.grades.values())

    @property
    def lost_per_hand(self) -> float:
        """Mean cost per hand of the decisions that were not the best."""
        return self.lost / self.hands


def tallies(reviewed: Iterable[Reviewed]) -> list[Tally]:
    """Return a row for each game and seat, or player if the records have names, in order.

    Seats of the same name share a row; a hand in which they play together counts once.
    """
    found: dict[tuple[str, str, str], Tally] = {}
    for each in reviewed:
        if isinstance(each, InvalidRecord):
            continue
        name, unit = each.hand.game.name, each.grader.unit
        for person in dict.fromkeys(map(each.who, each.seats)):
            found.setdefault((name, person, unit), Tally(name, person, unit)).hands += 1
        for decision in each.decisions:
            tally = found[name, each.who(decision.judged.seat), unit]
            if decision.grade is None or decision.judged.cost is None:
                tally.unknown += 1
                continue
            tally.grades[decision.grade] += 1
            if decision.grade != BEST:  # a cost within the limit of BEST is noise
                tally.lost += decision.judged.cost
    return list(found.values())


def decided(recorded: RecordedHand, grader: Grader, number: int) -> Decision | None:
    """Grade move `number`, from 0; None for a forced move."""
    judged = grader.judge(recorded.hand, number)
    if judged is None:
        return None
    rows = presentation_of(recorded.hand.game).rows(recorded.hand.until(number), judged.seat)
    return Decision(judged, grader.grade(judged), tuple(rows))
