"""Schedule of a tournament, the deals that count, and ratings of its players."""

from itertools import combinations
from math import exp, log, log10, sqrt
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from busso.cards.duplicate import Duel, estimate_share
from busso.evaluate.tournament.batches import Batch
from busso.evaluate.tournament.ratings import Ratings, rate
from busso.evaluate.tournament.schedule import PairState, Plan, Schedule
from busso.evaluate.tournament.settings import Pair
from tests.evaluate.tournament.parts import played, shares

PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]


def numbers(units: list[Batch | None]) -> list[tuple[int, int]]:
    return [(unit.first, unit.deals) for unit in units if unit is not None]


def test_deals_are_cut_into_batches() -> None:
    plan = Plan(deals=100, batch=32, records=40)
    schedule = Schedule(PAIRS[:1], plan)
    units = [schedule.next() for _ in range(5)]
    assert numbers(units) == [(0, 32), (32, 32), (64, 32), (96, 4)] and units[4] is None
    assert [unit.records for unit in units[:4] if unit] == [32, 8, 0, 0]


def test_pairs_one_after_the_other() -> None:
    schedule = Schedule(PAIRS, Plan(deals=20, batch=10))
    order = [unit.pair for _ in range(6) if (unit := schedule.next())]
    assert order == [pair for pair in PAIRS for _ in range(2)] and schedule.next() is None


def test_of_a_tournament_that_goes_on_only_the_rest_is_played() -> None:
    """Batches 0 and 2 are known, 1 was running: it comes first, and then all count."""
    plan = Plan(deals=50, batch=10)
    schedule, wins = Schedule(PAIRS[:1], plan), np.ones(10)
    for number in (0, 2):
        assert not schedule.add(played(plan.at(PAIRS[0], number), wins))
    assert schedule.deals == 10
    assert numbers([schedule.next() for _ in range(4)]) == [(10, 10), (30, 10), (40, 10)]
    schedule.add(played(plan.at(PAIRS[0], 1), wins))
    assert schedule.deals == 30


def test_what_another_plan_played_is_not_known() -> None:
    """The last batch of 25 deals was shorter: with 40 it is played again."""
    before, now = Plan(25, 10), Schedule(PAIRS, Plan(40, 10))
    assert [now.known(before.at(PAIRS[1], number)) for number in range(3)] == [True, True, False]
    assert not now.known(Batch(("a", "d"), 0, 10)) and not now.known(Batch(PAIRS[0], 5, 10))
    assert not now.known(Batch(PAIRS[0], 40, 10)), "there are but 40 deals"
    assert not now.known(Batch(PAIRS[0], 0, 10, 3)), "now nothing is written of it"


@given(st.integers(0, 2**32 - 1), st.sampled_from([0.03, 0.06, 0.2]), st.permutations(range(12)))
def test_a_pair_is_played_until_its_interval_is_small_enough(seed: int, until: float, order: list[int]) -> None:
    """Equivalent to a check of all deals so far after each batch, in whatever order the batches come."""
    random, plan = np.random.default_rng(seed), Plan(118, 10, until)
    wins = shares(random, 118)
    schedule = Schedule(PAIRS[:1], plan)
    for number in order:
        unit = plan.at(PAIRS[0], number)
        schedule.add(played(unit, wins[unit.first : unit.first + unit.deals]))
    state, deals = schedule.states[PAIRS[0]], 10
    while deals < 118 and estimate_share(wins[:deals]).half_width > until:
        deals = min(118, deals + 10)
    assert schedule.done and state.deals == deals
    duel = state.duel
    assert np.array_equal(duel.wins, wins[:deals]) and np.array_equal(duel.own, 11 * wins[:deals])
    assert duel.win_rate == estimate_share(wins[:deals])


@given(st.integers(0, 2**32 - 1), st.integers(1, 7))
def test_every_crew_counts_the_same(seed: int, size: int) -> None:
    """With any number of workers and any order of completion, the same batches count as with one process."""
    random, plan = np.random.default_rng(seed), Plan(2000, 20, 0.07)
    wins = {pair: shares(random, 2000) for pair in PAIRS}

    def run(size: int) -> dict[tuple[str, str], int]:
        schedule, under_way, handed = Schedule(PAIRS, plan), [], set()
        while not schedule.done:
            while len(under_way) < size and (unit := schedule.next()) is not None:
                assert unit not in handed, "played twice"
                handed.add(unit)
                under_way.append(unit)
            unit = under_way.pop(random.integers(len(under_way)))
            schedule.add(played(unit, wins[unit.pair][unit.first : unit.first + unit.deals]))
        if size == 1:
            assert 20 * len(handed) == schedule.deals, "one process plays nothing in vain"
        return {pair: state.deals for pair, state in schedule.states.items()}

    assert run(size) == run(1)


def test_what_will_be_needed() -> None:
    """Half-width 0.0961 after 100 deals, 0.02 wanted: 23.1 times as many deals, by the square-root law."""
    plan, wins = Plan(10_000, 100, 0.02), np.tile([0.0, 1.0], 50)
    state = PairState(PAIRS[0], plan)
    assert (state.needed, state.seconds_left) == (1, 0.0)
    state.add(played(plan.at(PAIRS[0], 0), wins, seconds=5.0))
    assert state.half_width == pytest.approx(0.0961, abs=1e-4)  # Wilson's interval for 50 of 100
    wanted = int(np.ceil((0.0961 / 0.02) ** 2))
    assert state.needed == wanted == 24 and state.seconds_left == pytest.approx(23 * 5.0)
    whole = PairState(PAIRS[0], Plan(250, 100))
    whole.add(played(whole.plan.at(PAIRS[0], 0), wins, seconds=5.0))
    assert (whole.needed, whole.seconds_left) == (3, 7.5)


EVEN, STRONG = (0.3, 0.4, 0.3), (0.06, 0.18, 0.76)


@pytest.mark.parametrize(("chances", "until", "batch"), [(STRONG, 0.02, 64), (EVEN, 0.05, 64), (EVEN, 0.02, 512)])
def test_intervals_hold_the_truth_although_they_say_when_to_stop(
    chances: tuple[float, float, float], until: float, batch: int
) -> None:
    """500 pairs, each played until its interval is narrow enough; coverage of the final intervals."""
    random, times, held, deals = np.random.default_rng(3), 500, 0, 0
    truth = chances[1] / 2 + chances[2]
    for _ in range(times):
        plan = Plan(100_000, batch, until)
        state = PairState(PAIRS[0], plan)
        while not state.settled:
            state.add(played(plan.at(PAIRS[0], state.next_number()), shares(random, batch, chances)))
        won = state.duel.win_rate
        held += won.low <= truth <= won.high
        deals += state.deals
        assert won.half_width <= until
    assert 0.935 < held / times < 0.965
    variance = chances[1] / 4 + chances[2] - truth**2
    assert deals / times > 0.8 * 1.96**2 * variance / until**2 or deals == times * batch


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
