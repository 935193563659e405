import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.tressette.rules import BUSSO, SILENT, STRISCIO, VOLO, points
from tests.errors import error_about
from tests.tressette.table import CROSSED, CROSSED_PLAYS, GAME, mask, play, table


@pytest.mark.parametrize(
    "thirds, last_taker, expected",
    [
        ([17, 15], 0, [6, 5]),
        ([17, 15], 3, [5, 6]),
        ([16, 16], 1, [5, 6]),
        ([16, 16], 2, [6, 5]),
        ([18, 14], 1, [6, 5]),
        ([32, 0], 0, [11, 0]),
        ([32, 0], 1, [10, 1]),
        ([1, 31], 2, [1, 10]),
        ([2, 30], 3, [0, 11]),
    ],
)
def test_thirds_are_rounded_down_and_the_last_trick_is_a_point(
    thirds: list[int], last_taker: int, expected: list[int]
) -> None:
    state = table(["", "", "", ""])[0]
    state["thirds"], state["last_taker"] = thirds, last_taker
    assert [points(state, team) for team in (0, 1)] == expected


def test_a_whole_hand() -> None:
    states = play(table(CROSSED), CROSSED_PLAYS)
    assert GAME.over(states).all()
    assert states[0]["thirds"].tolist() == [10, 22]
    assert states[0]["tricks"].tolist() == [5, 5]
    assert GAME.returns(states).tolist() == [[3, 8, 3, 8]]


def test_an_illegal_card_is_named_with_seat_and_legal_cards() -> None:
    states = table(["4C", "3C 5C AD", "", ""], plays="4C")
    with error_about(InputError, "AD", "seat 1", hint="legal: 5C 3C"):
        GAME.apply(states, np.array([7], np.uint8))
    with error_about(InputError, "action 40", "seat 1"):
        GAME.apply(states, np.array([40], np.uint8))


def test_the_deal_of_a_seed_stays() -> None:
    """On all platforms and in all versions, as guaranteed for environments and records."""
    (state,) = GAME.deal(np.array([1], np.uint64))
    hands = ("CD AD 2D 3C 4S 6S FS 3S AB 2B", "4D FC CC 2C 5S 7S RS 2S FB 3B", "5D 6D 7D 3D 5C 6C CS AS 7B RB")
    assert state["hands"][:3].tolist() == [mask(cards) for cards in hands] and state["leader"] == 0


def test_random_leader_is_not_bound_to_the_four_of_denari() -> None:
    states = GAME.deal(stream(1, "four", 0, 200))
    holds = states["hands"] & mask("4D") != 0
    assert 20 < np.count_nonzero(holds.argmax(axis=1) == states["leader"]) < 90


@pytest.mark.parametrize(
    "options, key",
    [
        ({"signal": True}, "game.signal"),
        ({"signals": "yes"}, "game.signals"),
        ({"first_leader": ["me"]}, "game.first_leader"),
        ({"first_leader": "me"}, "game.first_leader"),
    ],
)
def test_bad_options(options: dict[str, object], key: str) -> None:
    with error_about(InputError, key):
        load_game("tressette", options)


@pytest.mark.parametrize(
    "hand, led, signal",
    [
        ("4D 2D", "4D", BUSSO),
        ("4D 3D", "4D", BUSSO),
        ("3D 2D", "3D", BUSSO),
        ("3D 4D", "3D", STRISCIO),
        ("2D AD", "2D", STRISCIO),
        ("4D 5D 2C", "4D", STRISCIO),
        ("4D 3C 2C", "4D", VOLO),
        ("3D", "3D", VOLO),
    ],
)
def test_signals(hand: str, led: str, signal: int) -> None:
    states = play(table([hand, "", "", ""], signals="3B:busso"), led)
    assert states[0]["signals"][0].tolist() == [signal, SILENT, SILENT, SILENT]
    assert bool(states[0]["voids"] & 1) == (signal == VOLO)
