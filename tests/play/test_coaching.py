"""Coach that evaluates every decision: its costs equal those of the exact solution."""

import pytest

from busso.command.settings.game import game_defaults
from busso.evaluate.review.advisers import ActionValue
from busso.evaluate.review.grading import Evaluation
from busso.evaluate.solve.solution import solve
from busso.play.coach.coaching import LEAST, Coaching, is_mistake
from busso.sette_mezzo.rules import HIT, STICK
from busso.train.tabular.algorithms import evaluate_policy
from tests.play.people import sit_down


def test_costs_are_those_of_the_exact_solution() -> None:
    session = sit_down("game=sette_mezzo", "seed=5")
    table, coaching = session.table, Coaching()
    solved = solve(game_defaults("sette_mezzo"))
    costs, expected = [], []
    while table.score.games < 8:
        if table.hand.over:
            table.deal()
            continue
        state = solved.model.index(table.hand.state[0])
        action = (HIT, STICK)[len(costs) % 2]
        policy = solved.solution.policy.copy()
        policy[state] = action
        values = evaluate_policy(solved.model.mdp, policy)
        expected.append(float(solved.solution.values[state] - values[state]))
        move = table.play(action)
        judged = session.coach.judge(table.hand, len(table.hand.moves) - 1, move)
        assert judged is not None and judged.cost is not None
        assert is_mistake(judged) == (action != solved.solution.policy[state])
        costs.append(judged.cost)
        coaching.add(table.number, judged)
    assert costs == pytest.approx(expected)
    assert coaching.decisions == len(costs) and coaching.mistakes == sum(cost > LEAST for cost in costs) > 0
    assert coaching.cost == pytest.approx(sum(expected)) and coaching.mistakes < coaching.decisions


def test_what_was_taken_back_is_forgotten_and_judged_again() -> None:
    session = sit_down("game=sette_mezzo", "seed=5")
    table, coaching = session.table, Coaching()
    for action in (HIT, STICK):
        move = table.play(action)
        judged = session.coach.judge(table.hand, len(table.hand.moves) - 1, move)
        assert judged is not None
        coaching.add(table.number, judged)
    assert coaching.decisions == 2
    assert coaching.take_back(table.number, 1) and coaching.decisions == 1
    assert not coaching.take_back(table.number, 1) and not coaching.take_back(table.number + 1, 0)
    assert coaching.take_back(table.number, 0) and (coaching.decisions, coaching.cost) == (0, 0)


def test_what_does_not_show_is_no_mistake() -> None:
    def judged(cost: float | None) -> Evaluation:
        return Evaluation(1, 0, STICK, (ActionValue(HIT, 0.1), ActionValue(STICK, 0.1)), cost)

    assert [is_mistake(judged(cost)) for cost in (None, 0.0, 1e-16, 0.0004, 0.0006)] == [False] * 4 + [True]
    coaching = Coaching()
    coaching.add(0, judged(0.0004))
    assert (coaching.decisions, coaching.mistakes, coaching.cost) == (1, 0, 0)
