"""The rules of Kuhn poker, worked by hand."""

from typing import Any

import numpy as np
import pytest
from kuhn_poker.rules import ACTION_TEXT, CARD_TEXT, begin

from busso.cards.base.errors import InputError
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game

GAME = load_game("kuhn_poker")


def table(cards: str, plays: str = "", **options: Any) -> States:
    """A game in which the seats hold these cards, as `KJ`, after these plays, as `pass bet`."""
    game = GAME.configure(options)
    states = game.deal(np.zeros(1, np.uint64))
    begin(states[0], *(CARD_TEXT.index(card) for card in cards))
    for play in plays.split():
        game.apply(states, np.array([ACTION_TEXT.index(play)], np.uint8))
    return states


@pytest.mark.parametrize(
    ("cards", "plays", "won"),
    [
        ("KJ", "pass pass", [1, -1]),
        ("JK", "pass pass", [-1, 1]),
        ("JK", "bet pass", [1, -1]),  # a bluff: the king folds
        ("QK", "bet bet", [-2, 2]),
        ("KQ", "pass bet pass", [-1, 1]),
        ("KQ", "pass bet bet", [2, -2]),
    ],
)
def test_what_a_game_wins(cards: str, plays: str, won: list[int]) -> None:
    states = table(cards, plays)
    assert GAME.over(states)[0]
    assert GAME.returns(states)[0].tolist() == won


@pytest.mark.parametrize(("plays", "seat"), [("", 0), ("pass", 1), ("bet", 1), ("pass bet", 0)])
def test_whose_turn_it_is(plays: str, seat: int) -> None:
    states = table("QJ", plays)
    assert states[0]["turn"] == seat and not GAME.over(states)[0] and GAME.legal(states)[0] == 0b11


def test_a_bet_costs_what_the_option_says() -> None:
    assert GAME.configure({"bet": 3}).returns(table("JQ", "bet bet", bet=3))[0].tolist() == [-4, 4]


@pytest.mark.parametrize("bet", [0, 11, 1.5, True, "one"])
def test_a_bad_option_names_its_key(bet: object) -> None:
    with pytest.raises(InputError) as caught:
        GAME.configure({"bet": bet})
    assert caught.value.key == "game.bet"


def test_what_each_seat_sees() -> None:
    seen = unpack(GAME.observe(table("KQ", "pass bet").repeat(2), seats=np.array([0, 1], np.uint8)), GAME.bits)
    assert seen.tolist() == [[0, 0, 1, 0, 1, 1], [0, 1, 0, 1, 0, 0]]


def test_deals_are_uniform() -> None:
    """Each of the six deals comes up in a sixth of many games (5 standard deviations)."""
    cards = GAME.deal(stream(9, "deals", 0, 60_000))["cards"]
    found, counts = np.unique(cards, axis=0, return_counts=True)
    assert found.tolist() == [[0, 1], [0, 2], [1, 0], [1, 2], [2, 0], [2, 1]]
    assert np.all(np.abs(counts - 10_000) < 5 * np.sqrt(60_000 * 5 / 36))
