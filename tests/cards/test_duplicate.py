"""Duplicate deals and their statistics, against numbers worked by hand."""

from dataclasses import replace

import numpy as np
import pytest

from cards.duplicate import BATCH, Duel, duel, estimate, seatings
from cards.game import load_game
from cards.play import RandomPlayer, named_player
from cards.splitmix import stream
from tests.cards.test_play import Recorder
from tests.cards.toy import TOY

TRESSETTE = load_game("tressette")


def test_estimate() -> None:
    """Of 1, 2, 3, 4 the mean is 5/2 and the variance 5/3, so the interval is 1.96 * sqrt(5/12)."""
    result = estimate(np.array([1.0, 2.0, 3.0, 4.0]))
    assert result.mean == 2.5
    assert result.half_width == pytest.approx(1.959964 * 0.6454972, rel=1e-6)
    assert str(result) == "2.500 ± 1.265"


def test_one_deal_says_nothing_about_the_spread() -> None:
    result = estimate(np.array([0.5]))
    assert (result.mean, result.half_width) == (0.5, float("inf"))


def test_equal_deals_leave_no_doubt() -> None:
    assert estimate(np.full(10, 0.25)).half_width == 0


def test_intervals_hold_the_truth_in_95_of_100_cases() -> None:
    random = np.random.default_rng(1)
    held = 0
    for _ in range(2_000):
        result = estimate(random.normal(3.0, 2.0, 100))
        held += abs(result.mean - 3.0) < result.half_width
    assert 0.93 < held / 2_000 < 0.97


def test_a_duel_as_numbers() -> None:
    """Three deals: won both plays, one of two, and none."""
    result = Duel(np.array([1.0, 0.5, 0.0]), np.array([7.0, 5.0, 3.0]), np.array([4.0, 6.0, 8.0]))
    assert result.win_rate.mean == 0.5
    assert result.points.mean == pytest.approx((3 - 1 - 5) / 3)


def test_seatings() -> None:
    assert seatings(TRESSETTE).tolist() == [[0, 1, 0, 1], [1, 0, 1, 0]]
    assert seatings(TOY).tolist() == [[0, 1], [1, 0]]
    three = replace(TOY, seats=3, teams=((0,), (1,), (2,)))
    assert seatings(three).tolist() == [[0, 1, 0], [1, 0, 1]]


@pytest.mark.parametrize("name", ["greedy", "seed_heuristic"])
def test_a_player_against_itself_is_exactly_even(name: str) -> None:
    seeds = stream(1, "even", 0, 300)
    result = duel(TRESSETTE, named_player(TRESSETTE, name), named_player(TRESSETTE, name), seeds)
    assert np.all(result.wins == 0.5)
    assert np.array_equal(result.own, result.other)
    assert (result.points.mean, result.points.half_width) == (0, 0)


def test_swapping_the_players_mirrors_the_duel() -> None:
    seeds = stream(2, "mirror", 0, 200)
    players = [named_player(TRESSETTE, name) for name in ("greedy", "seed_heuristic")]
    there, back = duel(TRESSETTE, *players, seeds), duel(TRESSETTE, *players[::-1], seeds)
    assert np.array_equal(there.wins, 1 - back.wins)
    assert np.array_equal(there.own, back.other)


def test_a_duel_seats_each_player_in_both_teams_of_every_deal() -> None:
    first, second = (Recorder(named_player(TRESSETTE, "greedy")) for _ in range(2))
    duel(TRESSETTE, first, second, stream(3, "seats", 0, 5))
    # Games 0 to 4 are the deals as they are, 5 to 9 the same with the players swapped.
    places = {(game, seat) for game, seat, _ in first.asked}
    assert places == {(game, seat) for game in range(10) for seat in range(4) if seat % 2 == game // 5}
    assert {(game, seat) for game, seat, _ in second.asked} == {
        (game, seat) for game in range(10) for seat in range(4) if seat % 2 != game // 5
    }


def test_points_of_a_duel_add_up() -> None:
    result = duel(TRESSETTE, named_player(TRESSETTE, "greedy"), RandomPlayer(TRESSETTE), stream(4, "sum", 0, 50))
    assert np.allclose(result.own + result.other, 11)
    assert np.all(np.isin(result.wins, [0, 0.5, 1]))


def test_long_duels_are_cut_into_batches_without_a_trace() -> None:
    seeds = stream(5, "long", 0, BATCH + 3)
    players = [RandomPlayer(TOY), named_player(TOY, "lowest")]
    whole = duel(TOY, *players, seeds)
    tail = duel(TOY, *players, seeds[BATCH:])
    assert whole.wins.size == BATCH + 3
    assert np.array_equal(whole.own[BATCH:], tail.own)


def test_greedy_beats_random() -> None:
    result = duel(TRESSETTE, named_player(TRESSETTE, "greedy"), RandomPlayer(TRESSETTE), stream(6, "strength", 0, 1000))
    assert 0.75 < result.win_rate.mean < 0.85
