import numpy as np
import pytest

from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States
from tests.briscola import CARD_TEXT, GAME, MODULE

TABLE, OTHER_HAND = MODULE.SEES.table, MODULE.SEES.other_hand


def begin(states: States) -> None:
    """Start the game with the deck in the state."""
    for seat in (0, 1):
        states["hands"][0, seat] = sum(1 << int(card) for card in states["deck"][0, 3 * seat : 3 * seat + 3])


def table(first: str, second: str, stock: str = "", turned: str = "2B", plays: str = "") -> States:
    """Return a game with these three-card hands of seats 0 and 1, this top of the stock, and these cards played."""
    dealt = [*first.split(), *second.split(), *stock.split()]
    rest = [card for card in CARD_TEXT if card not in (*dealt, turned)]
    states = GAME.deal(np.zeros(1, np.uint64))
    states[0]["deck"] = [CARD_TEXT.index(card) for card in (*dealt, *rest, turned)]
    begin(states)
    for card in plays.split():
        GAME.apply(states, np.array([CARD_TEXT.index(card)], np.uint8))
    return states


def legal(states: States) -> str:
    return " ".join(card for number, card in enumerate(CARD_TEXT) if int(GAME.legal(states)[0]) >> number & 1)


@pytest.mark.parametrize(
    ("plays", "winner", "points"),
    [
        ("3D AD", 1, 21),  # the ace beats the three, the three beats the king
        ("3D RD", 0, 14),
        ("AD 2S", 0, 11),  # another suit loses
        ("3D 4B", 1, 10),  # the lowest trump beats all other suits
        ("5B 4B", 0, 0),  # the higher trump wins
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
    assert legal(states) == "RC AC AS" and MODULE.trumps(states[0]) == 3


def test_the_turned_card_is_drawn_last_and_then_the_other_hand_is_known() -> None:
    states = table("3D 4D 5D", "AD AC AS")
    while states[0]["drawn"] < 40:
        assert not unpack(GAME.observe(states), GAME.bits)[0, OTHER_HAND : OTHER_HAND + 40].any()
        card = int(GAME.legal(states)[0]).bit_length() - 1
        GAME.apply(states, np.array([card], np.uint8))
    turned = 1 << CARD_TEXT.index("2B")
    assert int(states[0]["hands"][1 - states[0]["leader"]]) & turned  # drawn by the loser of the trick
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
        ("AD 4S 2C", "2D 5S 6S", "", "2C"),  # leads the least valuable card; of 2C and 4S the weaker
        ("AD CC 5B", "2D 5S 6S", "", "CC"),  # a knight, 3 points, rather than a trump
        ("AD RC 5B", "2D 5S 6S", "", "5B"),  # a trump rather than a king: both cost 4, and the trump is weaker
        ("2D 4S 2C", "3D 5S 5B", "2D", "3D"),  # takes with the three: 10 points
        ("AD 4S 2C", "FC 5S 5B", "AD", "5B"),  # takes an ace with the lowest trump
        ("FD 4S 2C", "6C 5S 5B", "FD", "5S"),  # no trump for two points
        ("2D 4S 2C", "AC 5S 5B", "2D", "5S"),  # gives away nothing
    ],
)
def test_greedy(first: str, second: str, plays: str, card: str) -> None:
    chosen = GAME.policies["greedy"](table(first, second, plays=plays)[0], np.uint64(0))
    assert CARD_TEXT[chosen] == card


def test_deals_are_uniform() -> None:
    """Each card is at each place of the deck in one of 40 games (5 standard deviations)."""
    decks = GAME.deal(stream(9, "deals", 0, 40_000))["deck"]
    for place in (0, 5, 39):
        counts = np.bincount(decks[:, place], minlength=40)
        assert np.all(np.abs(counts - 1000) < 5 * np.sqrt(1000))
