"""Costs and grades of single decisions, with advisers whose values are known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.hand import Hand
from busso.command.settings.checks import SettingsError
from busso.evaluate.review.advisers import GRADES, ActionValue, Limits, judged_of, limits_of
from busso.evaluate.review.grader import Grader
from tests.errors import error_about

COSTS = st.floats(0, 20)


@given(st.tuples(COSTS, COSTS, COSTS).map(sorted), COSTS, COSTS)
def test_a_greater_cost_is_never_a_better_grade(limits: list[float], one: float, other: float) -> None:
    found = Limits(*limits)
    low, high = sorted((one, other))
    assert GRADES.index(found.grade(low)) <= GRADES.index(found.grade(high))
    assert [found.grade(limit) for limit in limits][2] in GRADES[:3] and found.grade(limits[2] + 1) == "blunder"


@pytest.mark.parametrize("limits", [(1, 0.5, 2), (-0.1, 0, 1), (0, 1, float("inf")), (float("nan"), 1, 2)])
def test_limits_that_do_not_rise_are_one_line(limits: tuple[float, float, float]) -> None:
    with error_about(SettingsError, "grades"):
        Limits(*limits)


def test_limits_follow_what_the_game_counts() -> None:
    spike = load_game("spike", {"bet": 10})
    assert limits_of(spike, "credits") == Limits(0.5, 2.5, 10.0)
    points = limits_of(load_game("tressette"), "points")
    assert [points.grade(cost) for cost in (0.1, 1 / 3, 1.0, 1.01)] == list(GRADES)


def hand_of_tressette() -> Hand:
    game = load_game("tressette")
    hand = Hand(game, stream(1, "test", 0, 1), game.deal(stream(3, "test", 0, 1)))
    while not hand.over:
        hand.play(hand.legal[0])
    return hand


class Says:
    """Adviser whose successive looks return the pairs in `looks`: value of the first card, and of all others."""

    unit = "points"

    def __init__(self, *looks: tuple[float, float]) -> None:
        self.looks = list(looks)
        self.asked: list[int] = []

    def values(self, game: object, state: np.ndarray, generator: np.ndarray) -> np.ndarray:
        self.asked.append(int(generator[0]))
        first, others = self.looks.pop(0)
        mask = int(game.legal(state)[0])  # type: ignore[attr-defined]
        legal = [action for action in range(40) if mask >> action & 1]
        found = np.full(40, np.nan)
        found[legal] = others
        found[legal[0]] = first
        return found


@pytest.mark.parametrize(
    ("looks", "cost", "grade"),
    [
        ([(5.0, 4.0)], 0.0, "best"),  # the first card is played
        ([(4.8, 5.0)], 0.2, "fine"),
        ([(3.0, 5.0), (4.4, 5.0)], 0.6, "mistake"),  # the second look counts
        ([(3.0, 5.0), (5.5, 5.0)], 0.0, "best"),  # the first look was noise
        ([(3.0, 5.0), (2.0, 5.0)], 3.0, "blunder"),
    ],
)
def test_what_seems_bad_is_looked_at_again(looks: list[tuple[float, float]], cost: float, grade: str) -> None:
    adviser, hand = Says(*looks), hand_of_tressette()
    grader = Grader("says", adviser, limits_of(hand.game, "points"))
    judged = grader.judge(hand, 0)
    assert judged is not None and judged.cost == pytest.approx(cost) and grader.grade(judged) == grade
    assert adviser.looks == [] and len(set(adviser.asked)) == len(looks)  # fresh samples each time
    assert (judged.best.action == judged.action) == (grade == "best")


def test_no_choice_and_no_value() -> None:
    hand = hand_of_tressette()
    move = hand.moves[0]
    assert judged_of(0, move, [ActionValue(move.action, 3.0)]) is None
    other = next(action for action in range(40) if action != move.action)
    unknown = judged_of(0, move, [ActionValue(other, 3.0), ActionValue(move.action, None)])
    assert unknown is not None and unknown.cost is None
    assert Grader("says", Says(), Limits(0, 1, 2)).grade(unknown) is None
