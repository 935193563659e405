"""The rules of Briscola, its rule player and its records, worked by hand."""

from typing import Any

import numpy as np
import pytest
from briscola import GAME
from briscola.observation import OTHER_HAND, TABLE
from briscola.rules import CARD_TEXT, begin, trumps

from busso.cards.base.errors import InputError
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States


def table(first: str, second: str, stock: str = "", turned: str = "2B", plays: str = "") -> States:
    """A game in which seats 0 and 1 hold three cards, the stock begins with these, and these cards were played."""
    dealt = [*first.split(), *second.split(), *stock.split()]
    rest = [card for card in CARD_TEXT if card not in (*dealt, turned)]
    states = GAME.deal(np.zeros(1, np.uint64))
    states[0]["deck"] = [CARD_TEXT.index(card) for card in (*dealt, *rest, turned)]
    begin(states[0])
    for card in plays.split():
        GAME.apply(states, np.array([CARD_TEXT.index(card)], np.uint8))
    return states


def legal(states: States) -> str:
    return " ".join(card for number, card in enumerate(CARD_TEXT) if int(GAME.legal(states)[0]) >> number & 1)


@pytest.mark.parametrize(
    ("plays", "winner", "points"),
    [
        ("3D AD", 1, 21),  # the ace is above the three, the three above the re
        ("3D RD", 0, 14),
        ("AD 2S", 0, 11),  # another suit takes nothing
        ("3D 4B", 1, 10),  # the least trump takes all
        ("5B 4B", 0, 0),  # the higher trump takes
        ("5B AD", 0, 11),
        ("2D FD", 1, 2),
        ("4D CS", 0, 3),
    ],
)
def test_who_takes_a_trick_and_what_it_counts(plays: str, winner: int, points: int) -> None:
    led, answer = plays.split()
    state = table(f"{led} 6C 7C", f"{answer} 6S 7S", plays=plays)[0]
    assert (state["turn"], state["leader"], state["points"][winner]) == (winner, winner, points)
    assert state["points"][1 - winner] == 0


def test_any_card_may_be_played_and_the_winner_draws_first() -> None:
    states = table("3D 4D 5D", "AD AC AS", "RC FC", plays="3D")
    assert legal(states) == "AD AC AS"  # no duty to follow suit
    GAME.apply(states, np.array([CARD_TEXT.index("AD")], np.uint8))
    assert legal(states) == "RC AC AS" and trumps(states[0]) == 3


def test_the_turned_card_is_drawn_last_and_then_the_other_hand_is_known() -> None:
    states = table("3D 4D 5D", "AD AC AS")
    while states[0]["drawn"] < 40:
        assert not unpack(GAME.observe(states), GAME.bits)[0, OTHER_HAND : OTHER_HAND + 40].any()
        card = int(GAME.legal(states)[0]).bit_length() - 1
        GAME.apply(states, np.array([card], np.uint8))
    turned = 1 << CARD_TEXT.index("2B")
    assert int(states[0]["hands"][1 - states[0]["leader"]]) & turned  # who lost the trick had to take it
    known = unpack(GAME.observe(states), GAME.bits)[0, OTHER_HAND : OTHER_HAND + 40]
    assert np.flatnonzero(known).tolist() == [
        card for card in range(40) if int(states[0]["hands"][1 - states[0]["turn"]]) >> card & 1
    ]


def test_the_card_on_the_table_is_seen() -> None:
    seen = unpack(GAME.observe(table("3D 4D 5D", "AD AC AS", plays="4D")), GAME.bits)[0, TABLE : TABLE + 40]
    assert np.flatnonzero(seen).tolist() == [CARD_TEXT.index("4D")]


@pytest.mark.parametrize(
    ("first", "second", "plays", "card"),
    [
        ("AD 4S 2C", "2D 5S 6S", "", "2C"),  # leads what is worth least; of 2C and 4S the weaker
        ("AD CC 5B", "2D 5S 6S", "", "CC"),  # a cavallo, 3 points, rather than a trump
        ("AD RC 5B", "2D 5S 6S", "", "5B"),  # a trump rather than a re: both cost 4, and the trump is weaker
        ("2D 4S 2C", "3D 5S 5B", "2D", "3D"),  # takes with the three: 10 points
        ("AD 4S 2C", "FC 5S 5B", "AD", "5B"),  # takes an ace with the least trump
        ("FD 4S 2C", "6C 5S 5B", "FD", "5S"),  # no trump for two points
        ("2D 4S 2C", "AC 5S 5B", "2D", "5S"),  # gives nothing
    ],
)
def test_greedy(first: str, second: str, plays: str, card: str) -> None:
    chosen = GAME.policies["greedy"](table(first, second, plays=plays)[0], np.uint64(0))
    assert CARD_TEXT[chosen] == card


def test_deals_are_uniform() -> None:
    """Each card comes up at each place of the deck in one of 40 games (5 standard deviations)."""
    decks = GAME.deal(stream(9, "deals", 0, 40_000))["deck"]
    for place in (0, 5, 39):
        counts = np.bincount(decks[:, place], minlength=40)
        assert np.all(np.abs(counts - 1000) < 5 * np.sqrt(1000))


@pytest.mark.parametrize(
    ("change", "key", "problem"),
    [
        ({"deck": ["2D"]}, "deck", "1 entries where 40 belong"),
        ({"deck": ["2D"] * 40}, "deck", "2D is there twice"),
        ({"deck": ["8D"] * 40}, "deck", "'8D' is not a card"),
        ({"deck": [[]] * 40}, "deck", "[] is not a card"),
        ({"plays": ["2D"]}, "plays", "1 entries where 40 belong"),
        ({"plays": ["2B"] * 40}, "play 1", "seat 0 does not hold 2B"),
    ],
)
def test_what_breaks_a_rule_is_named(change: dict[str, Any], key: str, problem: str) -> None:
    record = GAME.record(table("3D 4D 5D", "AD AC AS")[0], [])
    with pytest.raises(InputError) as caught:
        GAME.replay(record | change)
    assert caught.value.key == key and problem in caught.value.problem
