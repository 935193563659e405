"""Exact process of Blackjack against enumeration of all card orders, the engine, and values by hand."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from busso.blackjack.model import model
from busso.blackjack.rules import HANDS, HIT, KINDS, Options
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.mdp import HandEndedError, legal, reachable
from busso.cards.play import play
from busso.cards.players import named_player
from busso.cards.tables import TablePlayer
from busso.train.tabular.algorithms import evaluate_policy, expected_reward, policy_iteration
from tests.mdp import check_mdp

Deck = tuple[int, ...]


def best_sum(kinds: list[int]) -> tuple[int, bool]:
    total = sum(kind + 1 for kind in kinds)
    soft = 0 in kinds and total + 10 <= 21
    return total + 10 * soft, soft


class BruteForce:
    """Enumeration of every order of cards, in fractions; `deck[kind]` counts cards."""

    def __init__(self, options: Options, deck: Deck) -> None:
        self.options, self.deck = options, deck

    def draws(self, left: Deck) -> list[tuple[Fraction, int, Deck]]:
        return [
            (Fraction(count, sum(left)), kind, tuple(n - (k == kind) for k, n in enumerate(left)))
            for kind, count in enumerate(left)
            if count
        ]

    def compare(self, mine: int, theirs: int) -> Fraction:
        if theirs > 21 or theirs < mine:
            return Fraction(1)
        return Fraction(0 if theirs == mine and self.options.ties == "push" else -1)

    def dealer(self, mine: int, cards: list[int], left: Deck) -> Fraction:
        total, soft = best_sum(cards)
        rests = total >= 18 or (total == 17 and not (soft and self.options.soft_17 == "hit"))
        if (len(cards) >= 2 and (rests or total >= mine)) or not sum(left):
            return self.compare(mine, total)
        return sum((p * self.dealer(mine, [*cards, kind], rest) for p, kind, rest in self.draws(left)), Fraction(0))

    def player(self, cards: list[int], shown: int, left: Deck) -> Fraction:
        """Return the best expected result of a hand in play; the hole card is still in `left`."""
        stand = self.dealer(best_sum(cards)[0], [shown], left)
        if not sum(left):
            return stand
        hit = Fraction(0)
        for p, kind, rest in self.draws(left):
            total = best_sum([*cards, kind])[0]
            if total > 21:
                hit -= p
            elif total == 21:
                hit += p * self.dealer(21, [shown], rest)
            else:
                hit += p * self.player([*cards, kind], shown, rest)
        return max(stand, hit)

    def value(self) -> Fraction:
        total = Fraction(0)
        for p, first, one in self.draws(self.deck):
            for q, second, two in self.draws(one):
                for r, shown, three in self.draws(two):
                    if best_sum([first, second])[0] == 21:
                        dealt = sum(
                            (s * self.compare(21, best_sum([shown, hole])[0]) for s, hole, _ in self.draws(three)),
                            Fraction(0),
                        )
                    else:
                        dealt = self.player([first, second], shown, three)
                    total += p * q * r * dealt
        return total


def deck_of(**counts: int) -> Deck:
    return tuple(
        counts.get(name, 0) for name in ("a", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
    )


DECKS = [
    deck_of(a=2, four=1, six=2, ten=2),
    deck_of(a=1, two=1, five=1, seven=1, eight=1, nine=1, ten=1),
    deck_of(a=3, three=2, six=1, ten=1),
]
RULES: list[dict[str, Any]] = [{}, {"soft_17": "hit", "ties": "push"}, {"discount": 0.5, "soft_17": "hit"}]


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("deck", DECKS, ids=str)
def test_every_order_of_a_small_deck(deck: Deck, rules: dict[str, Any]) -> None:
    options = Options(**rules)
    exact = model(options, "value", np.array(deck))
    check_mdp(exact.mdp)
    found = expected_reward(exact.mdp, policy_iteration(exact.mdp).values)
    assert abs(found - float(BruteForce(options, deck).value())) < 1e-12
    assert exact.mdp.start.sum() + sum(exact.decided) == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("ties", "value"), [("lose", -0.168046959551606), ("push", -0.0610057188045698)])
def test_the_values_of_infinite_decks(ties: str, value: float) -> None:
    """As once enumerated in fractions; a hard 4 against a 10 loses 0.430 a game."""
    exact = model(Options(ties=ties), "value")
    values = policy_iteration(exact.mdp).values
    assert expected_reward(exact.mdp, values) == pytest.approx(value, abs=1e-12)
    if ties == "lose":
        assert values[exact.locate(["2", "2"], "10")] == pytest.approx(-0.430, abs=5e-4)


@pytest.mark.parametrize("rules", [{}, {"decks": 1}, {"decks": 6, "soft_17": "hit", "ties": "push"}], ids=str)
def test_simulated_play_agrees_with_the_computed_value(rules: dict[str, Any]) -> None:
    game = load_game("blackjack", rules)
    exact = model(Options(**rules), "value")  # undiscounted: the mean result of a game
    solution = policy_iteration(exact.mdp)
    seeds = stream(23, "simulated", 0, 400_000)
    seating = np.zeros((seeds.size, 1), np.uint8)
    policy = np.where(solution.policy < 0, -1, exact.policies["hit_below_14"])
    for player, values in (
        (TablePlayer(exact.index, solution.policy), solution.values),
        (named_player(game, "hit_below_14"), evaluate_policy(exact.mdp, policy)),
    ):
        results = game.returns(play(game, seeds, [player], seating)[0])
        half_width = 1.96 * results.std() / np.sqrt(seeds.size)
        assert abs(results.mean() - expected_reward(exact.mdp, values)) < half_width


def test_an_engines_states_are_those_of_the_process() -> None:
    for rules in ({}, {"decks": 2}):
        game = load_game("blackjack", rules)
        exact = model(Options(**rules), "value")
        met = reachable(exact.mdp, np.flatnonzero(exact.mdp.start)) & legal(exact.mdp).all(axis=1)
        states = game.deal(stream(2, "index", 0, 500))
        for _ in range(2):
            running = states[~game.over(states)]
            assert running.size > 50
            for state in running:
                at = exact.index(state)
                assert met[at]
                assert f"{state['sum']}" in exact.state_text(at)
                cards = HANDS.counts[state["hand"]]
                names = [str(k + 1) if k else "A" for k in range(KINDS) for _ in range(cards[k])]
                shown = min(int(state["open_rank"]), 9)
                assert exact.locate(names, str(shown + 1) if shown else "A") == at
            running = np.flatnonzero(~game.over(states))
            game.apply(states, np.full(running.size, HIT, np.uint8), running)


@pytest.mark.parametrize(
    ("player", "opponent", "error"),
    [
        (["A"], "2", "two cards"),
        (["A", "1"], "2", "'1'"),
        (["A", "2"], "X", "'X'"),
        (["2"] * 4, "2", "5 times, but there are 4"),
        (["10", "A", "2"], "2", "card 3"),
    ],
)
def test_impossible_cards(player: list[str], opponent: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        model(Options(decks=1), "value").locate(player, opponent)


def test_hands_that_have_ended() -> None:
    exact = model(Options(), "value")
    for cards, end in (
        (["A", "K"], "21 on the deal"),
        (["9", "2", "J"], "21 stands"),
        (["9", "3", "J"], "22: over 21"),
    ):
        with pytest.raises(HandEndedError, match=end):
            exact.locate(cards, "5")
