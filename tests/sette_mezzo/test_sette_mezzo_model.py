"""Exact process of Sette e mezzo against enumeration of all card orders, the engine, and values by hand."""

from fractions import Fraction

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.mdp import HandEndedError, legal, reachable
from busso.cards.play import play
from busso.cards.tables import TablePlayer
from busso.sette_mezzo import GAME
from busso.sette_mezzo.model import locate, model, state_text
from busso.sette_mezzo.rules import HANDS, HIT, KINDS, RANK_TEXT, STICK, Options
from busso.train.tabular.algorithms import evaluate_policy, expected_reward, policy_iteration
from tests.mdp import check_mdp

HALVES = (2, 4, 6, 8, 10, 12, 14, 1)
REWARDS = {"value": (1, 0, -1), "study": (1, 1, -1)}


class BruteForce:
    """Enumeration of every order of cards of a deck `[kind]`, in fractions and without states."""

    def __init__(self, limit: int, deck: tuple[int, ...], reward: str) -> None:
        self.limit, self.deck, self.reward = limit, deck, REWARDS[reward]

    def draws(self, left: tuple[int, ...]) -> list[tuple[Fraction, int, tuple[int, ...]]]:
        return [
            (Fraction(count, sum(left)), HALVES[kind], tuple(n - (k == kind) for k, n in enumerate(left)))
            for kind, count in enumerate(left)
            if count
        ]

    def stick(self, score: int, other: int, left: tuple[int, ...]) -> Fraction:
        if other < self.limit and sum(left):
            return sum((p * self.stick(score, other + v, rest) for p, v, rest in self.draws(left)), Fraction(0))
        win, tie, lose = self.reward
        return Fraction(win if other > 15 or other < score else tie if other == score else lose)

    def best(self, score: int, other: int, left: tuple[int, ...]) -> Fraction:
        if score > 15:
            return Fraction(self.reward[2])
        stick = self.stick(score, other, left)
        if not sum(left):
            return stick
        return max(stick, sum((p * self.best(score + v, other, rest) for p, v, rest in self.draws(left)), Fraction(0)))

    def start(self, own: int, other: int) -> Fraction:
        left = tuple(n - (k == own) - (k == other) for k, n in enumerate(self.deck))
        return self.best(HALVES[own], HALVES[other], left)


DECKS = [(1, 1, 1, 0, 0, 0, 1, 2), (0, 2, 0, 1, 1, 0, 0, 3), (2, 1, 0, 0, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1, 1)]


@pytest.mark.parametrize("reward", ["value", "study"])
@pytest.mark.parametrize(("deck", "limit"), [(DECKS[0], 10), (DECKS[1], 9), (DECKS[2], 15), (DECKS[3], 1)])
def test_every_order_of_a_small_deck(deck: tuple[int, ...], limit: int, reward: str) -> None:
    exact = model(Options(limit / 2), reward, np.array(deck))
    check_mdp(exact.mdp)
    values = policy_iteration(exact.mdp).values
    force = BruteForce(limit, deck, reward)
    total = Fraction(0)
    for own in range(KINDS):
        for other in range(KINDS):
            pairs = deck[own] * (deck[other] - (own == other))
            if pairs > 0:
                wanted = force.start(own, other)
                assert abs(values[HANDS.child[0, own] * KINDS + other] - float(wanted)) < 1e-12
                total += Fraction(pairs, sum(deck) * (sum(deck) - 1)) * wanted
    assert abs(expected_reward(exact.mdp, values) - float(total)) < 1e-12


@pytest.mark.parametrize("reward", ["value", "study"])
def test_simulated_play_agrees_with_the_computed_value(reward: str) -> None:
    game = load_game("sette_mezzo", {"limit": 5.5})
    exact = model(game.options, reward)
    solution = policy_iteration(exact.mdp)
    player = TablePlayer(exact.index, solution.policy)
    seeds = stream(17, "simulated", 0, 400_000)
    _, totals = play(game, seeds, [player], np.zeros((seeds.size, 1), np.uint8), game.rewards[reward])
    half_width = 1.96 * totals.std() / np.sqrt(seeds.size)
    assert abs(totals.mean() - expected_reward(exact.mdp, solution.values)) < half_width


def test_an_engines_states_are_those_of_the_process() -> None:
    exact = model(Options(), "value")
    states = GAME.deal(stream(2, "index", 0, 500))
    for state in states:
        at = exact.index(state)
        assert exact.mdp.start[at] > 0
        cards = RANK_TEXT[state["player_rank"]], RANK_TEXT[state["opponent_rank"]]
        assert at == exact.locate([cards[0]], cards[1])
    GAME.apply(states, np.full(500, HIT, np.uint8))
    met = reachable(exact.mdp, np.flatnonzero(exact.mdp.start))
    running = states[~GAME.over(states)]
    assert 100 < running.size < 500
    for state in running:
        at = exact.index(state)
        assert met[at] and legal(exact.mdp)[at].all()
        assert f"({state['score'] / 2:g}) against" in state_text(at)


def test_policies_of_the_process_and_of_the_engine_are_the_same() -> None:
    exact = model(Options(), "value")
    for state in GAME.deal(stream(2, "policies", 0, 200)):
        wanted = GAME.policies["hit_below_5"](state, np.uint64(0))
        assert exact.policies["hit_below_5"][exact.index(state)] == wanted
    below = evaluate_policy(exact.mdp, np.where(legal(exact.mdp).any(axis=1), exact.policies["hit_below_1"], -1))
    # Standing on 5 against a 5, which stops at once.
    assert below[exact.locate(["5"], "5")] == 0
    assert exact.policies["hit_below_5"][exact.locate(["5"], "5")] == STICK


@pytest.mark.parametrize(
    ("player", "opponent", "error"),
    [
        (["8"], "2", "'8'"),
        (["2"], "", "''"),
        (["F", "F", "F", "F", "F"], "2", "5 times, but there are 4"),
        (["F", "F", "F", "F"], "f", "5 times, but there are 4"),
    ],
)
def test_impossible_cards(player: list[str], opponent: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        locate(player, opponent)


def test_a_hand_that_is_over_has_ended() -> None:
    with pytest.raises(HandEndedError, match=r"^8: over seven and a half"):
        locate(["7", "A"], "2")
