"""Coaching: a verdict on every decision of a person, with the cost of a bad one."""

from __future__ import annotations

from busso.evaluate.review.grading import Evaluation

LEAST = 0.0005  # a smaller cost would be shown as 0.000 and counts as none


class Coaching:
    """A coach's verdicts on the decisions of the people at a table, over all its games, without those taken back."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int], Evaluation] = {}

    def add(self, game: int, judged: Evaluation) -> None:
        """Record a judged decision in a game, by the game's number at the table."""
        self._found[game, judged.number] = judged

    def take_back(self, game: int, moves: int) -> bool:
        """Forget the decisions of a game after its first `moves` moves; return whether there were any."""
        taken = [place for place in self._found if place[0] == game and place[1] > moves]
        for place in taken:
            del self._found[place]
        return bool(taken)

    @property
    def decisions(self) -> int:
        """Number of decisions judged."""
        return len(self._found)

    @property
    def mistakes(self) -> int:
        """Number of decisions that were not the best."""
        return sum(map(is_mistake, self._found.values()))

    @property
    def cost(self) -> float:
        """Total cost of the decisions."""
        return sum(judged.cost for judged in self._found.values() if judged.cost is not None and is_mistake(judged))


def is_mistake(judged: Evaluation) -> bool:
    """Return whether another action was better by a visible amount."""
    return judged.cost is not None and judged.cost >= LEAST
