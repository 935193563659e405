"""Accusi worked by hand; tests/tressette/test_against_reference.py covers when they are declared and seen."""

import pytest

from busso.cards.game import load_game
from busso.tressette.cards import accusi_of, accusi_points
from busso.tressette.rules import declared_points
from tests.tressette.hidden import declared
from tests.tressette.table import CROSSED, CROSSED_PLAYS, mask, table

GAME = load_game("tressette", {"accusi": True})


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


def test_a_record_says_that_seats_declare() -> None:
    states = table(CROSSED)
    states["with_accusi"] = True
    record = GAME.record(states[0], [])
    record["plays"] = CROSSED_PLAYS.split()
    assert record["accusi"] is True
    result = GAME.replay(record)
    assert (result["points"], result["accusi"]) == ([3, 8], [6, 6])
    del record["accusi"]
    assert "accusi" not in GAME.replay(record)
    assert "accusi" not in load_game("tressette").record(table(CROSSED)[0], [])
