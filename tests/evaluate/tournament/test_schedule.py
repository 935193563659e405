"""Schedule of a tournament: the next batch, the deals that count, and the end."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from busso.cards.duplicate import estimate_share
from busso.evaluate.tournament.batches import Batch
from busso.evaluate.tournament.schedule import PairState, Plan, Schedule
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
