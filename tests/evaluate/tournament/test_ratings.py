"""Ratings: cases by hand, a second algorithm, and coverage of the intervals."""

from itertools import combinations
from math import exp, log, log10, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busso.cards.duplicate import Duel
from busso.evaluate.tournament.ratings import Ratings, rate
from busso.evaluate.tournament.settings import Pair


def duel(wins: np.ndarray, even: float = 0.5) -> Duel:
    return Duel(wins.astype(np.float64), wins * 0, wins * 0, even)


def elo(found: Ratings) -> dict[str, float]:
    return {row.player: row.elo for row in found.rows}


def test_two_players_by_hand() -> None:
    """75 of 100 deals won plus half a deal each is 75.5 to 25.5, or 400 log10(75.5 / 25.5) = 188.56 Elo points.

    The chance is p = 75.5 / 101, the information 101 p (1 - p); the squared scores are 75 (1 - p)^2 + 25 p^2, and (1 -
    p)^2 + p^2 for a deal won and one lost; each player is half of the difference away from the mean.
    """
    found = rate({("a", "b"): duel(np.repeat([1.0, 0.0], [75, 25]))})
    difference, p = 400 * log10(75.5 / 25.5), 75.5 / 101
    assert difference == pytest.approx(188.56, abs=0.01)
    assert [row.player for row in found.rows] == ["a", "b"]
    assert elo(found) == {"a": pytest.approx(difference / 2), "b": pytest.approx(-difference / 2)}
    squares = 76 * (1 - p) ** 2 + 26 * p**2
    half = 1.959964 * 400 / log(10) * sqrt(squares) / (101 * p * (1 - p)) / 2
    for row in found.rows:
        assert (row.elo - row.low, row.high - row.elo) == (pytest.approx(half, rel=1e-6), pytest.approx(half, rel=1e-6))
    assert [row.won for row in found.rows] == [0.75, 0.25]


def test_a_player_that_wins_all_has_a_finite_rating() -> None:
    """10.5 to 0.5 is 21 to 1; the interval must include what 10 of 10 allows, 3 of 4 games."""
    best, worst = rate({("a", "b"): duel(np.ones(10))}).rows
    assert best.elo - worst.elo == pytest.approx(400 * log10(21))
    assert best.low - worst.high < 400 * log10(3) < best.high - worst.low


def test_one_against_many_by_hand() -> None:
    """Winning 2 of 5 as one of four has odds of 2 to 3, against 1 to 3 for equals: twice as strong."""
    alone = duel(np.full(100_000, 0.4), even=0.25)
    back = duel(np.full(100_000, 1 / 7), even=0.25)  # the other way round, half as strong: odds of 1/2 to 3
    found = rate({("a", "b"): alone, ("b", "a"): back})
    assert elo(found)["a"] - elo(found)["b"] == pytest.approx(400 * log10(2), abs=0.01)
    assert [row.won for row in found.rows] == [pytest.approx(0.4), pytest.approx(1 / 7)]


def test_the_pair_that_fits_least() -> None:
    """Each beats the next by the same share, and the last beats the first: all are equal, which misfits every pair."""
    duels = {pair: duel(np.full(100, 0.6)) for pair in (("a", "b"), ("b", "c"), ("c", "a"))}
    found = rate(duels)
    assert elo(found) == {name: pytest.approx(0, abs=1e-9) for name in "abc"}
    assert found.misfit == pytest.approx(0.1) and found.misfit_pair in duels


def test_an_anchor_is_zero_and_moves_nothing_else() -> None:
    random = np.random.default_rng(1)
    duels = {pair: duel(random.choice([0, 0.5, 1], 200, p=[0.2, 0.3, 0.5])) for pair in combinations("abc", 2)}
    free, anchored = elo(rate(duels)), rate(duels, "b")
    (b,) = (row for row in anchored.rows if row.player == "b")
    assert (b.elo, b.low, b.high) == (pytest.approx(0), pytest.approx(0), pytest.approx(0))
    assert elo(anchored) == {name: pytest.approx(value - free["b"]) for name, value in free.items()}
    assert sum(free.values()) == pytest.approx(0)


def by_hunter(duels: dict[Pair, Duel]) -> dict[str, float]:
    """Compute the same ratings by Zermelo's iteration (1929), in the form of Hunter (2004, Annals of Statistics 32)."""
    names = sorted({name for pair in duels for name in pair})
    won = dict.fromkeys(names, 0.0)
    for (a, b), each in duels.items():
        won[a] += each.wins.sum() + 0.5
        won[b] += (1 - each.wins).sum() + 0.5
    worth = dict.fromkeys(names, 1.0)
    for _ in range(20_000):
        sums = dict.fromkeys(names, 0.0)
        for (a, b), each in duels.items():
            for name in (a, b):
                sums[name] += (each.wins.size + 1) / (worth[a] + worth[b])
        new = {name: won[name] / sums[name] for name in names}
        scale = exp(sum(log(value) for value in new.values()) / len(new))
        new = {name: value / scale for name, value in new.items()}
        if max(abs(log(new[name] / worth[name])) for name in names) < 1e-12:
            break
        worth = new
    return {name: 400 * log10(worth[name]) for name in names}


@settings(max_examples=30)
@given(st.data())
def test_ratings_are_those_of_another_way(data: st.DataObject) -> None:
    names = "abcdefg"[: data.draw(st.integers(2, 6))]
    shares = st.lists(st.sampled_from([0.0, 0.25, 0.5, 1.0]), min_size=2, max_size=20)
    duels = {pair: duel(np.array(data.draw(shares))) for pair in combinations(names, 2)}
    expected = by_hunter(duels)
    assert elo(rate(duels)) == {name: pytest.approx(expected[name], abs=1e-4) for name in names}


def simulated(random: np.random.Generator, strengths: np.ndarray, deals: int, apart: bool) -> dict[Pair, Duel]:
    """Simulate a tournament of two plays a deal, with an effect of the deal on a player common to all its pairs.

    The chances of a pair are exactly those of its strengths. Half of the variance of a play is the two players' luck
    with this deal, unless the pairs are dealt `apart`.
    """
    luck, duels = random.normal(size=(strengths.size, deals)), {}
    for i, j in combinations(range(strengths.size), 2):
        if apart:
            luck = random.normal(size=luck.shape)
        threshold = NormalDist().inv_cdf(1 / (1 + exp(strengths[j] - strengths[i])))
        common = (luck[i] - luck[j]) / 2
        plays = common + sqrt(0.5) * random.normal(size=(2, deals)) < threshold
        duels[str(i), str(j)] = duel(plays.mean(axis=0))
    return duels


@pytest.mark.parametrize(("deals", "apart"), [(60, False), (400, False), (400, True)])
def test_intervals_hold_the_truth_in_95_of_100_tournaments(deals: int, apart: bool) -> None:
    """500 tournaments of five players, counting each player's interval separately."""
    random = np.random.default_rng(deals + apart)
    strengths = np.array([1.2, 0.5, 0.0, -0.2, -1.5])
    held, times = np.zeros(5), 500
    for _ in range(times):
        for row in rate(simulated(random, strengths, deals, apart)).rows:
            truth = strengths[int(row.player)] * 400 / log(10)
            held[int(row.player)] += row.low <= truth <= row.high
    assert 0.94 < held.mean() / times < 0.96
    assert held.min() / times > 0.925


def test_pairs_on_the_same_deals_are_not_independent() -> None:
    """Luck that a player has with a deal in all its pairs widens its interval."""
    strengths, random = np.zeros(5), np.random.default_rng(5)
    widths = [
        np.mean([row.high - row.low for row in rate(simulated(random, strengths, 2000, apart)).rows])
        for apart in (False, True)
    ]
    assert widths[0] > 1.1 * widths[1]
