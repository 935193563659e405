"""Rules, accusi, rewards and the symmetry of suits, by hand and by renamed hands."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from busso.base.errors import InputError
from busso.cards.compiled.batch import reward_loop
from busso.cards.compiled.bits import unpack
from busso.cards.compiled.splitmix import stream
from busso.cards.game import States, load_game
from busso.cards.play import Decisions
from busso.cards.play import play as play_games
from busso.cards.players import RandomPlayer
from busso.tressette.cards import ACCUSI, CARDS, PER_RANK, RANKS, SAME_RANK, SUITS, accusi_of, accusi_points, parse_card
from busso.tressette.observation import BITS_WITH_ACCUSI, DECLARED, HAND, HIGHEST, LED, SIGNALS, TAKING, UNBEATEN, VOIDS
from busso.tressette.rules import BUSSO, SILENT, STRISCIO, VOLO, declared_points, points
from busso.tressette.search.network_search import paid
from tests.errors import error_about
from tests.tressette.hidden import declared
from tests.tressette.table import A_SUIT_EACH, CROSSED, CROSSED_PLAYS, GAME, mask, play, table


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


WITH_ACCUSI = load_game("tressette", {"accusi": True})


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
    record = WITH_ACCUSI.record(states[0], [])
    record["plays"] = CROSSED_PLAYS.split()
    assert record["accusi"] is True
    result = WITH_ACCUSI.replay(record)
    assert (result["points"], result["accusi"]) == ([3, 8], [6, 6])
    del record["accusi"]
    assert "accusi" not in WITH_ACCUSI.replay(record)
    assert "accusi" not in load_game("tressette").record(table(CROSSED)[0], [])


SWEEP = " ".join(rank + suit for rank in "4567FCRA23" for suit in "DCSB")


def earned(reward: str, states: States, cards: str) -> Any:
    """Return the earnings of each seat while the cards are played."""
    totals = np.zeros((1, 4), np.float32)
    for card in cards.split():
        action = np.array([parse_card(card)], np.uint8)
        reward_loop(GAME.rules.apply, GAME.rewards[reward])(states, np.zeros(1, np.int64), action, totals)
    return pytest.approx(totals[0].tolist(), abs=1e-5)


@pytest.mark.parametrize(
    "trick, closing",
    [
        ("AD 2D 4D 3D", -0.1 + 0.5 + 3 * 0.3),  # takes ace and 2 with the 3
        ("4D 3D 5D 6D", 0.05 + 0.5 + 0.3),  # the partner takes with a 3
        ("4D 5D 6D 7D", 0.05 + 0.5),  # takes nothing of value
        ("4D 5D 6D AD", -0.2 + 0.5 + 0.3),  # takes with the ace itself
        ("4D RD AC 2C", -0.1 + 0.5 + 2 * 0.3),  # the partner takes what two seats discard
        ("3D 5D 4D AD", -0.2 - 0.5),  # loses the ace
        ("4D 5D FD 6D", 0.05 - 0.5),
    ],
)
def test_seed_closing_a_trick(trick: str, closing: float) -> None:
    states = table(trick.split())
    earned("study", states, " ".join(trick.split()[:3]))
    assert earned("study", states, trick.split()[3]) == [0, 0, 0, closing]


@pytest.mark.parametrize("reward, own", [("points", -5 / 11), ("win", -1.0), ("points_and_win", -8 / 11)])
def test_rewards_at_the_end(reward: str, own: float) -> None:
    states = table(CROSSED)
    plays = CROSSED_PLAYS.split()
    assert earned(reward, states, " ".join(plays[:-1])) == [0, 0, 0, 0]
    assert earned(reward, states, plays[-1]) == [own, -own, own, -own]
    assert paid(np.array([3.0, 8.0]), reward) == pytest.approx([own, -own])  # as computed in search


def test_the_default_reward_is_points() -> None:
    assert next(iter(GAME.rewards)) == "points"
    assert earned("points", table(A_SUIT_EACH), SWEEP) == [1, -1, 1, -1]


OPEN = load_game("tressette", {"signals": True, "accusi": True})
HANDS = 12
TURN_ROUND = [suits for suits in permutations(range(SUITS)) if suits != (0, 1, 2, 3)]


def old_cards(suits: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the old card of each new card, if the new suit `k` is the old suit `suits[k]`."""
    return np.concatenate([np.arange(RANKS) + RANKS * suit for suit in suits])


def old_bits(suits: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the old bit of each new bit of an observation."""
    bits = np.arange(BITS_WITH_ACCUSI)
    for start in [*range(HAND, VOIDS, CARDS), *range(LED, TAKING, CARDS), UNBEATEN, HIGHEST]:
        bits[start : start + CARDS] = start + old_cards(suits)
    for seat in range(4):
        for new, old in enumerate(suits):
            bits[VOIDS + SUITS * seat + new] = VOIDS + SUITS * seat + old
            at, source = (SIGNALS + 12 * seat + 3 * suit for suit in (new, old))
            bits[at : at + 3] = np.arange(source, source + 3)
            declared = DECLARED + ACCUSI * seat
            for first in (0, *range(SAME_RANK, ACCUSI, PER_RANK)):
                bits[declared + first + new] = declared + first + old
    return bits


def renamed_deal(states: States, suits: tuple[int, ...]) -> States:
    renamed = states.copy()
    renamed["hands"] = 0
    for new, old in enumerate(old_cards(suits)):
        renamed["hands"] |= (states["hands"] >> np.uint64(old) & np.uint64(1)) << np.uint64(new)
    return renamed


@pytest.mark.parametrize("suits", TURN_ROUND)
def test_the_symmetry_that_networks_are_told(suits: tuple[int, ...]) -> None:
    """Bits are permuted between corresponding places of the suits; bits of no suit stay."""
    symmetry = OPEN.symmetry
    assert symmetry is not None
    there = {pair: bit for bit, pair in enumerate(zip(symmetry.part.tolist(), symmetry.place.tolist(), strict=True))}
    renamed = [suits[part] if part >= 0 else part for part in symmetry.part]
    assert [there[pair] for pair in zip(renamed, symmetry.place.tolist(), strict=True)] == old_bits(suits).tolist()


@pytest.mark.parametrize("suits", TURN_ROUND)
def test_renamed_suits(suits: tuple[int, ...]) -> None:
    seeds = stream(5, "symmetry", 0, HANDS)
    renamed = renamed_deal(OPEN.deal(seeds), suits)
    cards, bits = old_cards(suits), old_bits(suits)
    new_name = np.argsort(cards).astype(np.uint8)

    def watch(decisions: Decisions, actions: np.ndarray, totals: np.ndarray) -> None:
        states = decisions.states
        assert np.array_equal(
            unpack(OPEN.observe(renamed), OPEN.bits), unpack(OPEN.observe(states), OPEN.bits)[:, bits]
        )
        legal = [unpack(OPEN.legal(each)[:, None], CARDS) for each in (renamed, states)]
        assert np.array_equal(legal[0], legal[1][:, cards])
        OPEN.apply(renamed, new_name[actions])

    final, _ = play_games(OPEN, seeds, [RandomPlayer()], np.zeros((HANDS, 4), np.uint8), watch=watch)
    assert final["accusi"].any()
    assert np.array_equal(OPEN.returns(renamed), OPEN.returns(final))
