"""Accusi, and promises of signals, worked by hand."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from busso.cards.compiled.bits import unpack
from busso.cards.game import States, load_game
from busso.tressette.accusi import accusi_of, accusi_points
from busso.tressette.observation import DECLARED
from busso.tressette.rules import declared_points
from tests.tressette.hidden import declared
from tests.tressette.reference import ACCUSI, DECK, accusi
from tests.tressette.table import CROSSED, CROSSED_PLAYS, mask, play, table

GAME = load_game("tressette", {"accusi": True})
# The rules' example in seat 0: napoletana in coppe and three aces, spade missing. Seats 1 and 2 hold three twos and
# three threes, coppe missing.
WORKED = [
    "AC 2C 3C AD AB 4D 5D 6D 7D FD",
    "2D 2S 2B 4C 5C 6C 7C FC CC RC",
    "3D 3S 3B CD RD 4S 5S 6S 7S FS",
    "AS CS RS 4B 5B 6B 7B FB CB RB",
]


def declaring(hands: Sequence[str], leader: int = 0, plays: str = "", signals: str = "") -> States:
    states = table(hands, leader, signals=signals)
    states["with_accusi"] = True
    return play(states, plays)


def seen_by(states: States, seat: int) -> list[set[str]]:
    """Return the declarations in the observation of a seat, by relative seat."""
    bits = unpack(GAME.observe(states, seats=np.array([seat], np.uint8)), GAME.bits)[0, DECLARED:]
    return [{word for word, bit in zip(ACCUSI, row, strict=True) if bit} for row in bits.reshape(4, -1)]


@pytest.mark.parametrize(
    "hand, words, points",
    [
        ("AC 2C 3C AD AB", {"napoletana C", "three A without S"}, 6),
        ("AD 2D 3D", {"napoletana D"}, 3),
        ("AD 2D RD 3C", set(), 0),
        ("AD AC", set(), 0),
        ("2D 2S 2B", {"three 2 without C"}, 3),
        ("3D 3C 3S 3B", {"four 3"}, 4),
        ("AC AS AB 2C 2S 2B", {"three A without D", "three 2 without D"}, 6),
        ("AB 2B 3B 2D 2C 2S", {"napoletana B", "four 2"}, 7),
        ("AD 2D 3D AC 2C 3C AS 2S 3S 3B", {
            "napoletana D", "napoletana C", "napoletana S", "three A without B", "three 2 without B", "four 3"
        }, 19),
        ("RD RC RS RB FD FC FS FB", set(), 0),
    ],
)  # fmt: skip
def test_what_a_hand_declares(hand: str, words: set[str], points: int) -> None:
    state = table([hand, "", "", ""])[0]
    state["accusi"][0] = accusi_of(mask(hand))
    assert declared(state, 0) == words
    assert accusi_points(state["accusi"][0]) == points == declared_points(state, 0)


@given(st.permutations(DECK).map(lambda deck: deck[:10]))
def test_any_hand_against_the_second_implementation(cards: list[str]) -> None:
    state = table(["", "", "", ""])[0]
    state["accusi"][2] = accusi_of(mask(" ".join(cards)))
    assert declared(state, 2) == accusi(cards)
    assert declared_points(state, 0) == sum(ACCUSI[word] for word in accusi(cards))


def test_each_seat_declares_before_its_first_card_and_everybody_hears_it() -> None:
    states = declaring(WORKED)
    assert seen_by(states, 0) == seen_by(states, 1) == [set()] * 4
    own = {"napoletana C", "three A without S"}
    play(states, "AC")
    assert seen_by(states, 0) == [own, set(), set(), set()]
    assert seen_by(states, 1) == [set(), set(), set(), own]
    assert [declared_points(states[0], team) for team in (0, 1)] == [6, 0]
    play(states, "4C 3S AS")
    everything = [own, {"three 2 without C"}, {"three 3 without C"}, set()]
    assert seen_by(states, 0) == everything
    assert seen_by(states, 2) == everything[2:] + everything[:2]
    assert [declared_points(states[0], team) for team in (0, 1)] == [9, 3]


def test_a_record_says_that_seats_declare() -> None:
    record = GAME.record(declaring(CROSSED)[0], [])
    record["plays"] = CROSSED_PLAYS.split()
    assert record["accusi"] is True
    result = GAME.replay(record)
    assert (result["points"], result["accusi"]) == ([3, 8], [6, 6])
    del record["accusi"]
    assert "accusi" not in GAME.replay(record)
    assert "accusi" not in load_game("tressette").record(table(CROSSED)[0], [])
