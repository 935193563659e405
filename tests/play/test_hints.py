"""Hints, odds and reviews: equal to the solvers' and samplers' numbers, given the seat's information."""

import numpy as np
import pytest

from busso.cards.compiled.splitmix import derive
from busso.cards.game import load_game
from busso.cards.hand import Hand
from busso.cards.players import named_player
from busso.command.settings.checks import SettingsError
from busso.evaluate.review.advisers import ActionValue, Evaluation
from busso.evaluate.solve.solution import solve
from busso.play.table.hints import Coach, Coaching
from busso.spike.search import showdown_odds
from busso.train.tabular.algorithms import evaluate_policy
from tests.composed import game_defaults
from tests.errors import error_about
from tests.play.people import choice, reply, sit_down
from tests.spike.hidden import reshuffle_hidden as deal_anew
from tests.tressette.hidden import reshuffle_hidden


@pytest.mark.parametrize(("game", "options"), [("blackjack", {}), ("blackjack", {"decks": 1}), ("sette_mezzo", {})])
def test_exact_hints_are_those_of_the_solution(game: str, options: dict[str, int]) -> None:
    settings = game_defaults(game) | options
    solved = solve(settings)
    session = sit_down(f"game={game}", *(f"{key}={value}" for key, value in options.items()), "seed=3")
    table, coach, seen = session.table, session.coach, 0
    while seen < 6:
        if table.hand.over:
            table.deal()
            continue
        state = solved.model.index(table.hand.state[0])
        hint = coach.hint(table.hand)
        assert hint[0].action == solved.solution.policy[state]
        assert hint[0].value == pytest.approx(solved.solution.values[state])
        # The other action once, then optimal play.
        policy = solved.solution.policy.copy()
        policy[state] = hint[1].action
        assert hint[1].value == pytest.approx(evaluate_policy(solved.model.mdp, policy)[state])
        odds = {each.action: each.chances for each in coach.odds(table.hand)}
        assert all(sum(chances.values()) == pytest.approx(1) for chances in odds.values())
        best = list(odds[hint[0].action].values())
        assert best == pytest.approx(solved.outcomes[state].tolist())
        tie = -1 if game == "blackjack" else 0
        for worth in hint:  # advice matches the odds
            win, tied, lose = odds[worth.action].values()
            assert worth.value == pytest.approx(win + tie * tied - lose)
        seen += 1
        table.play(choice(table))


def test_hints_of_tressette_are_mean_points_of_the_team() -> None:
    session = sit_down("seed=7", "hint=monte_carlo:samples:300")
    table, coach = reply(session.table), session.coach
    hint = coach.hint(table.hand)
    assert {each.action for each in hint} == set(table.hand.legal)
    values = [each.value for each in hint]
    assert values == sorted(values, reverse=True) and all(0 <= value <= 11 for value in values)  # type: ignore
    player = named_player(table.game, "monte_carlo:samples:300")
    player.begin(derive(table.hand.seeds, (0x68696E74 << 16) + len(table.hand.moves)))
    assert int(player.act(table.hand.decisions())[0]) == hint[0].action
    assert coach.hint(table.hand) == hint


@pytest.mark.parametrize("given", ["", "signals=true accusi=true", "signals=true", "first_leader=four_of_denari"])
def test_the_champion_searches_for_hints_where_it_knows_the_rules(given: str) -> None:
    session = sit_down("seed=7", *given.split())
    hand, coach = reply(session.table).hand, session.coach
    assert coach.name == "search:champion" and not coach.chosen
    assert {each.action for each in coach.hint(hand) if each.value is not None} == set(hand.legal)


def test_hints_use_only_what_the_seat_knows() -> None:
    session = sit_down("seed=7", "accusi=true", "signals=true", "hint=monte_carlo:samples:20")
    table, coach = session.table, session.coach
    assert coach.adviser is not None
    random, changed = np.random.default_rng(4), 0
    while not reply(table).hand.over:
        state = table.hand.state.copy()
        reshuffle_hidden(state, 0, random)
        other = Hand(table.game, table.hand.seeds, state)
        other.moves = [*table.hand.moves]
        there = {each.action: each.value for each in coach.hint(other)}
        here = {each.action: each.value for each in coach.hint(table.hand)}
        changed += bool((state["hands"] != table.hand.state["hands"]).any())
        assert here == there
        table.play(choice(table))
    assert changed > 3


def test_a_review_says_what_each_decision_cost() -> None:
    session = sit_down("seed=7", "hint=monte_carlo:samples:50")
    table, coach = session.table, session.coach
    hints: list[list[ActionValue]] = []
    while not reply(table).hand.over:
        if len(table.hand.legal) > 1:
            hints.append(coach.hint(table.hand))
        table.play(table.hand.legal[-1])
    judged = coach.review(table.hand, [0])
    assert [list(each.worths) for each in judged] == hints
    for each in judged:
        played = next(worth.value for worth in each.worths if worth.action == each.action)
        assert each.cost == each.worths[0].value - played >= 0 and (each.cost > 0 or each.best.action == each.action)  # type: ignore[operator]
    assert sum(each.cost or 0 for each in judged) > 0


def test_odds_of_spike_by_a_slow_count() -> None:
    """For a seat in the last betting round, count how often it beats all possible pairs of the other, with all dice."""
    table = sit_down("game=spike", "hands=1", "seed=8").table
    while not (table.hand.turn == 0 and int(table.hand.state[0]["round"]) == 3 and 1 in table.hand.legal):
        table.play(4 if 4 in table.hand.legal else 1)
    game = table.game
    state = table.hand.state
    chance = showdown_odds(state, 20_000, np.array([5], np.uint64))
    random, won, number = np.random.default_rng(3), 0, 600
    for _ in range(number):
        other = state.copy()
        deal_anew(other, 0, random)
        while not game.over(other)[0]:
            game.apply(other, np.array([1], np.uint8))
        won += int(other["hands_won"][0][0])
    assert chance == pytest.approx(won / number, abs=4 * (0.25 / number) ** 0.5)


def test_who_cannot_say_what_actions_are_worth() -> None:
    game, settings = load_game("tressette"), game_defaults("tressette")
    for name in ("greedy", "exact"):
        with error_about(SettingsError, "hint", name, hint="monte_carlo"):
            Coach(game, settings, name)


def test_only_visible_mistakes_count_until_they_are_taken_back() -> None:
    coaching, worths = Coaching(), (ActionValue(1, 0.1), ActionValue(0, 0.1))
    for number, cost in enumerate((None, 0.0, 1e-16, 0.0004, 0.0006, 0.1), start=1):
        coaching.add(0, Evaluation(number, 0, 0, worths, cost))
    assert (coaching.decisions, coaching.mistakes, coaching.cost) == (6, 2, pytest.approx(0.1006))
    assert coaching.take_back(0, 5) and (coaching.decisions, coaching.mistakes) == (5, 1)
    assert not coaching.take_back(0, 5) and not coaching.take_back(1, 0)
    assert coaching.take_back(0, 0) and (coaching.decisions, coaching.cost) == (0, 0)
