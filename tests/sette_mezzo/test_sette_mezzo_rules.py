"""Sette e mezzo against a second implementation in plain Python, by hand, in records, and solved."""

from fractions import Fraction

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.cards.mdp import HandEndedError, legal, reachable
from busso.cards.play import play
from busso.cards.tables import TablePlayer
from busso.sette_mezzo import GAME
from busso.sette_mezzo.model import locate, model, state_text
from busso.sette_mezzo.rules import (
    HANDS,
    HIT,
    KINDS,
    MOST,
    RANK_TEXT,
    SEES,
    STICK,
    Options,
    apply,
    begin,
    give_opponent,
    give_player,
    parse_card,
)
from busso.train.tabular.algorithms import evaluate_policy, expected_reward, policy_iteration
from tests.cards.recorded import recorded
from tests.errors import error_about
from tests.mdp import check_mdp


def halves(card: str) -> int:
    return 1 if card in "FCR" else 2 * ("A234567".index(card) + 1)


def referee(player: list[str], opponent: list[str], limit: float) -> int:
    """Return the result by a second implementation of the rules, after checking every draw."""
    for rank in RANK_TEXT:
        assert [*player, *opponent].count(rank) <= 4
    score = sum(map(halves, player))
    assert sum(map(halves, player[:-1])) <= 15
    if score > 15:
        assert len(opponent) == 1
        return -1
    other = sum(map(halves, opponent))
    assert other >= 2 * limit
    assert len(opponent) == 1 or sum(map(halves, opponent[:-1])) < 2 * limit
    if other > 15 or score > other:
        return 1
    return 0 if score == other else -1


@pytest.mark.parametrize("limit", [0.5, 5.0, 7.5])
def test_random_games_follow_the_rules(limit: float) -> None:
    game = load_game("sette_mezzo", {"limit": limit})
    records, final = recorded(game, stream(5, "rules", 0, 1500))
    found = [referee(record["player"], record["opponent"], limit) for record in records]
    assert found == game.returns(final)[:, 0].tolist()
    assert set(found) == {-1, 0, 1}
    for record, wanted in zip(records, found, strict=True):
        replayed = GAME.replay(record)
        assert replayed["result"] == wanted
        assert replayed["scores"] == [sum(map(halves, record[side])) / 2 for side in ("player", "opponent")]


def state_with(player: str, opponent: str) -> np.ndarray:
    state = np.array([GAME.blank])
    begin(state[0], parse_card(player[0]), parse_card(opponent))
    for card in player[1:]:
        give_player(state[0], parse_card(card))
    return state


def test_every_first_pair_is_as_likely_as_the_deck_has_it() -> None:
    states = GAME.deal(stream(3, "pairs", 0, 200_000))
    pairs = np.zeros((10, 10))
    np.add.at(pairs, (states["player_rank"], states["opponent_rank"]), 1)
    wanted = 200_000 * np.where(np.eye(10) == 1, 4 * 3, 4 * 4) / (40 * 39)
    # Chi-squared over 100 cells, 99 degrees of freedom: 170 is beyond five standard deviations.
    assert ((pairs - wanted) ** 2 / wanted).sum() < 170


def test_what_either_has_drawn_is_gone_from_the_deck() -> None:
    state = state_with("2FA", "R")
    give_opponent(state[0], parse_card("R"))
    gone = {card: int(state["taken"][0, parse_card(card)]) for card in "A2FCR"}
    assert gone == {"A": 1, "2": 1, "F": 1, "C": 0, "R": 2} and state["taken"].sum() == 5


def test_observation() -> None:
    bits = unpack(GAME.observe(state_with("2FA", "R")), GAME.bits)[0]
    assert bits[SEES.score : SEES.score + 17].nonzero()[0].tolist() == [7]
    assert bits[SEES.opponent : SEES.opponent + 8].nonzero()[0].tolist() == [7]
    cards = np.split(bits[SEES.own_A :], np.cumsum(MOST)[:-1])
    assert [int(kind.sum()) for kind in cards] == [1, 1, 0, 0, 0, 0, 0, 1]
    assert all((np.diff(kind) <= 0).all() for kind in cards)
    # The three face cards have the same score, so the player cannot tell them apart.
    assert (GAME.observe(state_with("2CA", "F")) == GAME.observe(state_with("2FA", "R"))).all()
    assert unpack(GAME.observe(state_with("77", "2")), GAME.bits)[0, SEES.score + 16] == 1


@pytest.mark.parametrize("limit", [0, 0.25, 8, 5.2, -1, float("nan"), True])
def test_bad_limits(limit: float) -> None:
    with error_about(InputError, "game.limit"):
        load_game("sette_mezzo", {"limit": limit})


def test_unknown_option() -> None:
    with error_about(InputError, "game.limits", hint="limit"):
        load_game("sette_mezzo", {"limits": 5})


GOOD = {"game": "sette_mezzo", "limit": 5, "player": ["2", "4"], "opponent": ["3", "F", "A", "F"]}


@pytest.mark.parametrize(
    ("change", "key", "says"),
    [
        ({"limit": 9}, "limit", "0.5 to 7.5"),
        ({"limit": "five"}, "limit", "0.5 to 7.5"),
        ({"player": []}, "player", "0 cards, but a hand begins with 1"),
        ({"player": "2"}, "player", "not a list"),
        ({"player": ["8"]}, "player: card 1", "'8'"),
        ({"player": ["7", "7", "A"]}, "player", "card 3 is drawn after going over"),
        ({"player": ["F"] * 4}, "player, opponent", "F is drawn 6 times, but there are 4"),
        ({"opponent": ["3", "F"]}, "opponent", "the game is not over"),
        ({"opponent": ["5", "A"]}, "opponent", "card 2 is drawn"),
        ({"player": ["7", "A"], "opponent": ["3", "F"]}, "opponent", "card 2 is drawn"),
    ],
)
def test_bad_records(change: dict, key: str, says: str) -> None:
    assert GAME.replay(GOOD) == {"scores": [6.0, 5.0], "result": 1}
    with error_about(InputError, key, says):
        GAME.replay(GOOD | change)


def test_rewards() -> None:
    won, tied, lost, running = (state_with(*cards) for cards in (("7F", "6"), ("6", "6"), ("5", "6"), ("5", "6")))
    wanted = {"value": [1, 0, -1, 0], "study": [1, 1, -1, 0]}
    for state in (won, tied, lost):
        apply(state[0], STICK)
    for name, reward in GAME.rewards.items():
        for state, value in zip((won, tied, lost, running), wanted[name], strict=True):
            totals = np.zeros(1, np.float32)
            reward(state[0], STICK, state[0], totals)
            assert totals[0] == value


def test_policies() -> None:
    for cards, below, beat in ((("4F", "2"), HIT, STICK), (("5", "2"), STICK, STICK), (("5", "6"), STICK, HIT)):
        state = state_with(*cards)
        assert GAME.policies["hit_below_5"](state[0], np.uint64(0)) == below
        assert GAME.policies["beat_the_card"](state[0], np.uint64(0)) == beat


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
