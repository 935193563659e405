"""Engine of Blackjack against a second implementation in plain Python, cases by hand, and records."""

from typing import Any

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.blackjack import GAME
from busso.blackjack.rules import (
    HIT,
    MOST,
    SEES,
    STAND,
    apply,
    begin,
    dealer_draws,
    give_player,
    parse_card,
    take,
)
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from tests.cards.recorded import recorded
from tests.errors import error_about

OPTIONS: list[dict[str, Any]] = [
    {},
    {"decks": 1},
    {"decks": 8, "soft_17": "hit"},
    {"ties": "push"},
    {"decks": 2, "soft_17": "hit", "ties": "push"},
]


def best_sum(cards: list[str]) -> tuple[int, bool]:
    """Return the sum with one ace as 11 if that does not exceed 21, and whether it is soft."""
    total = sum(1 if card == "A" else 10 if card in "10JQK" else int(card) for card in cards)
    soft = "A" in cards and total + 10 <= 21
    return total + 10 * soft, soft


def referee(player: list[str], dealer: list[str], decks: Any, soft_17: str, ties: str) -> int:
    """Return the result by a second implementation of the rules, after checking every draw."""
    if decks != "infinite":
        assert all([*player, *dealer].count(card) <= 4 * decks for card in [*player, *dealer])
    tie = 0 if ties == "push" else -1
    mine, theirs = best_sum(player)[0], best_sum(dealer)[0]
    if best_sum(player[:2])[0] == 21:
        assert len(player) == len(dealer) == 2
        return tie if theirs == 21 else 1
    assert all(best_sum(player[:n])[0] < 21 for n in range(2, len(player)))
    if mine > 21:
        assert len(dealer) == 2
        return -1
    for n in range(2, len(dealer) + 1):
        total, soft = best_sum(dealer[:n])
        at_rest = total > 17 or (total == 17 and not (soft and soft_17 == "hit"))
        assert (at_rest or total >= mine) == (n == len(dealer))
    if theirs > 21 or theirs < mine:
        return 1
    return tie if theirs == mine else -1


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_random_games_follow_the_rules(options: dict[str, Any]) -> None:
    game = load_game("blackjack", options)
    records, final = recorded(game, stream(5, "rules", 0, 1500))
    found = set()
    for record, wanted in zip(records, game.returns(final)[:, 0], strict=True):
        result = referee(*(record[key] for key in ("player", "dealer", "decks", "soft_17", "ties")))
        assert result == wanted
        sums = [best_sum(record[side])[0] for side in ("player", "dealer")]
        assert game.replay(record) == {"sums": sums, "result": result}
        found.add((result, best_sum(record["player"][:2])[0] == 21))
    assert {(1, True), (1, False), (-1, False)} <= found
    assert ((0, False) in found) == (options.get("ties") == "push")


def state_with(player: str, dealer: str, **options: Any) -> np.ndarray:
    """Return the state after the deal and the player's draws; cards as text, the dealer's open card first."""
    state = np.array([load_game("blackjack", options).blank])
    first, second, *more = [parse_card(card) for card in player.split()]
    begin(state[0], first, second, *(parse_card(card) for card in dealer.split()))
    for rank in more:
        give_player(state[0], rank)
    return state


@pytest.mark.parametrize(
    ("player", "dealer", "soft_17", "draws"),
    [
        ("10 9", "10 6", "stand", True),  # 16 is below both
        ("10 9", "10 7", "stand", False),  # 17
        ("10 2", "10 2", "stand", False),  # 12 has reached the player's 12
        ("10 3", "10 2", "stand", True),
        ("10 2", "10 3", "stand", False),  # 13 is more than 12
        ("10 9", "A 6", "stand", False),  # soft 17
        ("10 9", "A 6", "hit", True),
        ("10 7", "A 6", "hit", False),  # soft 17 has reached 17
        ("10 9", "A 7", "hit", False),  # soft 18
        ("10 9", "10 7", "hit", False),  # hard 17
        ("10 9 5", "10 2", "stand", False),  # the player is bust
    ],
)
def test_when_the_dealer_draws(player: str, dealer: str, soft_17: str, draws: bool) -> None:
    assert dealer_draws(state_with(player, dealer, soft_17=soft_17)[0]) == draws


def test_a_shoe_is_drawn_without_replacement_to_the_last_card() -> None:
    state = state_with("2 2", "2 2", decks=1)
    state["random"] = 99
    drawn = [take(state[0]) for _ in range(52)]
    assert np.bincount(drawn).tolist() == [4] * 13
    assert drawn != sorted(drawn)


def test_infinitely_many_decks_draw_every_rank_alike() -> None:
    state = state_with("2 2", "2 2")
    counts = np.bincount([take(state[0]) for _ in range(130_000)], minlength=13)
    # Chi-squared with 12 degrees of freedom exceeds 45 once in 100,000 cases.
    assert ((counts - 10_000) ** 2 / 10_000).sum() < 45
    assert not state["taken"].any()


def test_observation() -> None:
    bits = unpack(GAME.observe(state_with("A 2 K 2", "Q 5")), GAME.bits)[0]
    assert bits[SEES.sum : SEES.sum + 23].nonzero()[0].tolist() == [15] and bits[SEES.soft] == 0
    assert bits[SEES.dealer : SEES.dealer + 10].nonzero()[0].tolist() == [9]
    cards = np.split(bits[SEES.own_A :], np.cumsum(MOST)[:-1])
    assert [int(kind.sum()) for kind in cards] == [1, 2, 0, 0, 0, 0, 0, 0, 0, 1]
    assert unpack(GAME.observe(state_with("A 2", "Q 5")), GAME.bits)[0, SEES.soft] == 1
    # The hole card is hidden, and ten-valued cards look the same.
    assert (GAME.observe(state_with("J 2", "Q 5")) == GAME.observe(state_with("K 2", "10 9"))).all()
    assert unpack(GAME.observe(state_with("10 9 8", "2 2")), GAME.bits)[0, SEES.sum + 22] == 1


@pytest.mark.parametrize(
    ("options", "key"),
    [
        ({"decks": 0}, "game.decks"),
        ({"decks": 9}, "game.decks"),
        ({"decks": "two"}, "game.decks"),
        ({"decks": True}, "game.decks"),
        ({"soft_17": True}, "game.soft_17"),
        ({"ties": "win"}, "game.ties"),
        ({"discount": 1.1}, "game.discount"),
        ({"discount": "much"}, "game.discount"),
        ({"deck": 1}, "game.deck"),
    ],
)
def test_bad_options(options: dict[str, Any], key: str) -> None:
    with error_about(InputError, key):
        load_game("blackjack", options)


GOOD = {
    "game": "blackjack",
    "decks": 1,
    "soft_17": "stand",
    "ties": "lose",
    "player": ["9", "2", "7"],
    "dealer": ["6", "Q", "5"],
}


@pytest.mark.parametrize(
    ("change", "key", "says"),
    [
        ({"decks": 12}, "decks", "1 to 8, or infinite"),
        ({"player": ["9"]}, "player", "1 cards, but a hand begins with 2"),
        ({"player": ["9", "1"]}, "player: card 2", "'1'"),
        ({"player": ["9", "2", "K", "5"]}, "player", "card 4 is drawn at 21"),
        ({"player": ["A", "K", "5"]}, "player", "card 3 is drawn at 21"),
        ({"player": ["A", "K"]}, "dealer", "card 3 is drawn"),
        ({"player": ["9", "5"]}, "dealer", "card 3 is drawn"),
        ({"player": ["9", "5", "K"]}, "dealer", "card 3 is drawn"),
        ({"dealer": ["6", "Q"]}, "dealer", "the game is not over"),
        ({"player": ["2"] * 5}, "player, dealer", "2 is drawn 5 times, but there are 4"),
        ({"dealer": 5}, "dealer", "not a list"),
    ],
)
def test_bad_records(change: dict[str, Any], key: str, says: str) -> None:
    assert GAME.replay(GOOD) == {"sums": [18, 21], "result": -1}
    with error_about(InputError, key, says):
        GAME.replay(GOOD | change)


def test_a_record_of_an_infinite_deck_may_hold_any_number_of_a_card() -> None:
    record = GOOD | {"decks": "infinite", "player": ["2"] * 9, "dealer": ["2", "K", "8"]}
    assert GAME.replay(record) == {"sums": [18, 20], "result": -1}


def test_rewards() -> None:
    reward = GAME.rewards["value"]
    for player, ties, wanted in (("10 9", "lose", 1), ("10 8", "lose", -1), ("10 8", "push", 0)):
        state = state_with(player, "9 9", ties=ties)
        totals = np.zeros(1, np.float32)
        reward(state[0], STAND, state[0], totals)
        assert totals[0] == 0
        apply(state[0], STAND)
        reward(state[0], STAND, state[0], totals)
        assert totals[0] == wanted


def test_policies() -> None:
    for player, at_14, at_17 in (("10 3", HIT, HIT), ("10 4", STAND, HIT), ("A 6", STAND, STAND)):
        state = state_with(player, "5 5")
        assert GAME.policies["hit_below_14"](state[0], np.uint64(0)) == at_14
        assert GAME.policies["hit_below_17"](state[0], np.uint64(0)) == at_17
