"""Hands worked by hand: showdowns, betting, buying, dice, reshuffles, all-in."""

from typing import Any

import numpy as np
import pytest

from busso.base.errors import InputError
from busso.cards.game import load_game
from busso.cards.play import play
from busso.cards.players import RandomPlayer, named_player
from busso.cards.records import Recorder
from busso.spike import GAME
from busso.spike.cards import VALUES
from busso.spike.rules import apply, open_hand, proceed
from busso.spike.state import STATE, Options, blank
from tests.spike.hands import dealt, deck, hand

Cards = tuple[int, int, int]


def winner(*cards: Cards, **changes: Any) -> int:
    result = GAME.replay(hand(*dealt(*cards), players=len(cards), **changes))
    return int(result["winner"])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((3, -2, 0), (4, -2, 0)),  # |1| before |2|
        ((-5, 4, 0), (1, 4, -3)),  # |-1| before |2|
        ((5, -3, 0), (-5, 3, 0)),  # 2 before -2
        ((7, -5, 0), (5, -3, 0)),  # both 2, of 7 and of 5 in positive cards
        ((4, 4, -7), (6, 1, -6)),  # both 1, of 8 and of 7 in positive cards
        ((6, 2, -7), (5, 3, -7)),  # both 1 of 8, the greater single card
        ((9, -9, 0), (8, -8, 0)),  # both 0, of 9 and of 8
        ((2, -1, -1), (-1, 0, 0)),  # 0 before |-1|
    ],
)
def test_the_better_hand_wins_in_either_seat(first: Cards, second: Cards) -> None:
    assert winner(first, second) == 0
    assert winner(second, first) == 1


def test_lot_decides_between_fully_tied_seats() -> None:
    tied = (5, -3, -1)
    worse = (5, -3, 1)
    assert [winner(tied, worse, (5, -3, -1), tie_break=lot) for lot in range(4)] == [0, 2, 0, 2]
    assert [winner((5, -3, -1), (5, -3, -1), (5, -3, -1), tie_break=lot) for lot in (0, 4, 8)] == [0, 1, 2]


SPECIAL = {"options": {"special_hands": True}}


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 0, 5), (10, -10, 1)),  # pure sabacc beats anything, whatever the third card
        ((0, 0, 5), (9, -8, -1)),
        ((10, -10, 0), (9, -9, 0)),  # prime sabacc beats yee-haa
        ((1, -1, 0), (10, -7, -3)),  # yee-haa beats an ordinary zero
    ],
)
def test_special_hands(first: Cards, second: Cards) -> None:
    assert winner(first, second, **SPECIAL) == 0
    assert winner(second, first, **SPECIAL) == 1


def played(front: list[int], actions: list[int], credits: tuple[int, ...] = (50, 50), **changes: Any) -> np.void:
    """Return the state after some actions of a hand that begins with these cards."""
    state = np.array([blank(Options(hands=1))], STATE)
    state["players"] = len(credits)
    state["credits"][0, : len(credits)] = credits
    left = list(range(62))
    cards = []
    for value in deck(*front):
        cards.append(next(card for card in left if VALUES[card] == value))
        left.remove(cards[-1])
    state["deck"] = cards
    state["ordered"] = 62
    state["dice"] = [[1, 2], [3, 4], [5, 6]]
    for name, value in changes.items():
        state[name] = value
    open_hand(state[0])
    proceed(state[0])
    for action in actions:
        apply(state[0], action)
    return state[0]


def cards_of(mask: int) -> list[int]:
    return [card for card in range(62) if mask >> card & 1]


def test_equal_dice_replace_the_hands_but_not_the_spikes() -> None:
    front = [*dealt((6, 2, 5), (9, 9, 9)), -1, -2, -3, -4]
    state = played(front, [1, 1, 4, 4, 1, 1], dice=[[3, 3], [1, 2], [1, 2]])
    assert VALUES[state["hands"][:2]].tolist() == [[-3, -1], [-4, -2]]
    assert VALUES[state["spikes"][:2]].tolist() == [5, 9]
    assert sorted(VALUES[cards_of(int(state["discards"]))].tolist()) == [2, 6, 9, 9]


def test_reshuffle_without_a_seed_puts_the_discards_under_the_deck() -> None:
    # Eight seats leave 38 cards; a double takes 16; with 22 left, the next dice reshuffle the discards.
    quiet = [1] * 8 + [4] * 8 + [1] * 8
    state = played([], quiet, (50,) * 8, dice=[[2, 2], [1, 2], [1, 2]])
    assert state["drawn"] == 40 and len(cards_of(int(state["discards"]))) == 16
    before = state["deck"].copy()
    for action in [4] * 8 + [1] * 8:
        apply(state, action)
    assert state["drawn"] == 24 and state["discards"] == 0
    assert state["deck"][24:46].tolist() == before[40:].tolist()
    assert state["deck"][46:].tolist() == sorted(state["deck"][46:].tolist())


def test_raise_cap() -> None:
    game = load_game("spike", {"raise_cap": 1})
    states = game.deal(np.array([1], np.uint64))
    game.apply(states, np.array([0], np.uint8))
    assert game.legal(states)[0] == 0b110


def test_the_deal_of_a_seed_stays() -> None:
    """On all platforms and in all versions, as guaranteed for environments and records."""
    game = load_game("spike", {"hands": 1})
    record = game.record(game.deal(np.array([1440], np.uint64))[0], [])
    assert record["deck"][:8] == [10, 6, -7, 3, -3, -6, 10, 5]
    assert (record["dice"], record["tie_break"]) == ([[5, 5], [5, 1], [6, 5]], 438)


def test_number_of_players_is_drawn_for_each_game() -> None:
    game = load_game("spike", {"seats": 8, "min_seats": 2})
    states = game.deal(np.arange(2000, dtype=np.uint64))
    counts = np.bincount(states["players"], minlength=9)
    assert (counts[:2] == 0).all() and (counts[2:] > 200).all()
    final, _ = play(game, np.arange(50, dtype=np.uint64), [RandomPlayer()], np.zeros((50, 8), np.uint8))
    assert game.returns(final).sum(1).tolist() == [0.0] * 50
    for state, row in zip(final, game.returns(final), strict=True):
        assert (row[state["players"] :] == 0).all()


@pytest.mark.parametrize("options", [{}, {"seats": 8, "min_seats": 3, "rotate": True}], ids=["two", "three to eight"])
def test_each_hand_of_a_match_is_the_same_whatever_was_played_before(options: dict[str, Any]) -> None:
    """Therefore both plays of a duplicate deal have the same cards and dice in all hands."""
    game = load_game("spike", options)
    seeds, seating = np.arange(20, dtype=np.uint64), np.zeros((20, game.seats), np.uint8)
    recorders = [Recorder(game, seeds.size) for _ in range(3)]
    for recorder, player in zip(recorders, ("initial", "cautious", "random"), strict=True):
        play(game, seeds, [named_player(game, player)], seating, watch=recorder.watch)
    shared = set()
    for k, start in enumerate(game.deal(seeds)):
        plays = zip(*(recorder.take(k, start)["hands"] for recorder in recorders), strict=False)
        for number, hands in enumerate(plays):
            for name in ("deck", "dice", "tie_break"):
                assert all(hand[name] == hands[0][name] for hand in hands)
            shared.add((number, tuple(hands[0]["deck"])))
    assert len(shared) == len({cards for _, cards in shared}) > 50  # and all hands are different
    assert {number for number, _ in shared} >= {0, 1, 2}


def bad(options: dict[str, Any]) -> str:
    """Return the option named in the error."""
    with pytest.raises(InputError) as error:
        GAME.configure(options)
    return error.value.key.removeprefix("game.")


def test_bad_options_are_named() -> None:
    for seats in (9, 10**30, 2.5, 1):
        assert bad({"seats": seats}) == "seats"
    assert bad({"seats": 4, "min_seats": 5}) == "min_seats"
    assert bad({"credits": 51}) == "credits" and bad({"ante": 60}) == "credits"
    assert bad({"bet": 3}) == "bet"
    assert bad({"rotate": 1}) == "rotate"
    assert bad({"hands": 0}) == "hands"
    assert bad({"chairs": 3}) == "chairs"
