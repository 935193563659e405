"""Engine of Sette e mezzo against a second implementation in plain Python, cases by hand, and records."""

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.sette_mezzo import GAME
from busso.sette_mezzo.rules import (
    HIT,
    MOST,
    RANK_TEXT,
    SEES,
    STICK,
    apply,
    begin,
    give_opponent,
    give_player,
    parse_card,
)
from tests.cards.recorded import recorded
from tests.errors import error_about


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
