"""End of a run, due events, the pace of learning, and its progress: by hand, with fake clocks."""

import time

import numpy as np
import pytest

from busso.cards.duplicate import Duel
from busso.command import console as progress
from busso.command.settings.checks import SettingsError
from busso.command.settings.compose import compose
from busso.train.requests import DqnCounters, RateLimiter
from busso.train.run.budget import CLOCKS, Budget
from busso.train.run.curves import Rates
from busso.train.run.every import ROWS, SHARE, Every
from busso.train.run.progress import Display, Status, curve
from busso.train.settings.dqn import DEFAULT_MINUTES, TrainSettings
from tests.errors import error_about
from tests.train.defaults import learner_settings


class Clock:
    """Fake clock, in seconds, set by the test."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


def settings(*overrides: str) -> TrainSettings:
    return compose(TrainSettings, "train", list(overrides))


def test_without_a_budget_a_run_takes_the_time_of_its_job_or_nine_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BUSSO_MINUTES", raising=False)
    assert settings().names_no_budget and settings().training_minutes == DEFAULT_MINUTES == 9
    monkeypatch.setenv("BUSSO_MINUTES", "233.5")
    assert settings().training_minutes == 233.5
    assert settings("minutes=3").training_minutes == 3
    assert settings("episodes=500").training_minutes is None
    assert settings("experiment=study_tressette").training_minutes is None
    for text, minutes in (("", 9), ("soon", 9), ("-3", 9), ("0", 9), ("nan", 9), ("inf", 1e7)):
        monkeypatch.setenv("BUSSO_MINUTES", text)
        assert settings().training_minutes == minutes


def test_phases_that_do_not_end_within_the_budget_are_refused() -> None:
    phases = "opponents.phases=[{until: 100, mix: {random: 1.0}}, {until: null, mix: {network: 1.0}}]"
    assert settings(phases, "episodes=101").opponents.phases[0].until == 100
    for budget in ("episodes=100", "minutes=5"):
        with error_about(SettingsError, "opponents.phases", "above 100"):
            settings(phases, budget)


def test_budget_of_episodes() -> None:
    budget = Budget(200, None)
    assert [budget.spent(n) for n in (0, 50, 200, 300)] == [0, 0.25, 1, 1]
    assert [budget.episodes_left(n) for n in (0, 150, 200, 300)] == [200, 50, 0, 0]
    assert not budget.time_is_up()


def test_the_clock_starts_with_the_first_rollout() -> None:
    clock = Clock()
    budget = Budget(None, 1.0, clock)
    budget.seconds_before = 15.0
    clock.now += 1000
    assert budget.seconds() == 15 and budget.spent(10**9) == 0.25 and budget.episodes_left(10**9) is None
    budget.start_clock()
    clock.now += 30
    budget.start_clock()
    assert budget.seconds() == 45 and budget.spent(0) == 0.75 and not budget.time_is_up()
    clock.now += 15
    assert budget.time_is_up() and budget.spent(0) == 1


def test_minutes_may_be_those_of_the_cpu() -> None:
    """A process that waits uses none."""
    budget = Budget(None, 1.0, CLOCKS["cpu"])
    budget.start_clock()
    time.sleep(0.3)
    assert budget.seconds() < 0.2


def test_how_long_the_rest_will_take() -> None:
    clock = Clock()
    budget = Budget(1000, None, clock)
    assert budget.seconds_left(100) is None
    budget.start_clock()
    clock.now += 1
    assert budget.seconds_left(100) is None  # unknown after one second
    clock.now += 9
    assert budget.seconds_left(100) == pytest.approx(90) and budget.seconds_left(0) is None


def test_due_at_every_multiple_but_never_sooner_than_the_seconds() -> None:
    clock = Clock()
    every = Every(100, 60.0, clock)
    assert [every.take(n) for n in (0, 99, 100, 101)] == [False, False, True, False]
    assert not every.take(100_000)  # a thousand were passed at once
    clock.now += 59.9
    assert not every.take(200_000)
    clock.now += 0.1
    assert every.take(200_000)  # it was still due
    clock.now += 1000
    assert not every.take(200_099) and every.take(200_100)


@pytest.mark.parametrize(
    ("took", "share", "distance"), [(5.0, SHARE, 250.0), (0.5, SHARE, 60.0), (13.0, SHARE, 600.0), (3.0, 0.03, 100.0)]
)
def test_what_takes_long_is_kept_to_a_share_of_the_time(took: float, share: float, distance: float) -> None:
    """Two percent, unless it has a share of its own."""
    clock = Clock()
    every = Every(1, 60.0, clock, most=600.0, share=share)
    assert every.take(1)
    clock.now += took
    assert every.ended(every.last) == pytest.approx(took)
    clock.now = every.last + distance - 0.1
    assert not every.take(2)
    clock.now += 0.2
    assert every.take(2)


def test_what_does_not_end_is_due_again_all_the_same() -> None:
    clock = Clock()
    stuck, rare = Every(1, 60.0, clock, most=600.0), Every(1, 900.0, clock, most=600.0)
    assert stuck.take(1) and rare.take(1)
    for later, due in ((599.9, (False, False)), (0.1, (True, False)), (300.0, (False, True))):
        clock.now += later
        assert (stuck.take(2), rare.take(2)) == due


@pytest.mark.parametrize(("per_second", "at_most"), [(5_000, 17_000), (200_000, 17_000), (50, 4_000)])
def test_rows_of_a_week_are_thinned_with_the_age_of_the_run(per_second: int, at_most: int) -> None:
    """Checked every second of a week; 10,000 episodes and 2 seconds between two rows, as by default."""
    clock = Clock()
    log, taken = Every(10_000, 2.0, clock, dense=ROWS), []
    for clock.now in range(1, 7 * 24 * 3600):
        if log.take(per_second * clock.now):
            taken.append(clock.now)
    at, total = np.array(taken), clock.now
    assert at.size <= at_most
    for share in (1.0, 0.1, 0.01):  # at any time, as many points as a picture can show, evenly spread
        seen = at[at <= share * total]
        usual = max(2.0, 10_000 / per_second)
        assert np.diff(seen, prepend=0).max() <= max(2 * usual, share * total / ROWS + 2)
    assert np.diff(at[at < ROWS * 2]).max() <= max(2, 10_000 / per_second)  # a short run keeps all rows


def test_a_thinned_every_needs_no_memory_of_its_own() -> None:
    """An interruption does not matter: `passed` is in the checkpoint."""

    def rows(stops: set[int]) -> list[int]:
        every, found = Every(10, 0.0, dense=4), []
        for episodes in range(0, 3000, 5):
            if episodes in stops:
                passed, every = every.passed, Every(10, 0.0, dense=4)
                every.passed = passed
            if every.take(episodes):
                found.append(episodes)
        return found

    whole = rows(set())
    assert whole[:10] == [10, 20, 30, 40, 50, 60, 70, 80, 100, 120] and len(whole) == 8 + 4 * 5
    assert rows({65, 80, 85, 1000, 1005, 2560}) == whole


def test_a_trainer_may_time_itself() -> None:
    clock = Clock()
    budget = Budget(1000, 1.0, clock)
    budget.seconds_before = 10.0
    budget.add(20.0)
    clock.now += 1000
    assert budget.seconds() == 30 and budget.spent(0) == 0.5 and budget.seconds_left(100) == 30
    budget.add(30.0)
    assert budget.time_is_up()


def test_rates_are_of_the_last_seconds_and_never_of_a_moment() -> None:
    clock = Clock()
    rates = Rates(20.0, clock)
    rates.per_second(0, 0)
    clock.now += 10
    assert rates.per_second(5000, 20) == (500, 2)
    clock.now += 0.001  # just after a log row
    assert rates.per_second(5000, 20) == pytest.approx((500, 2), rel=1e-3)
    for _ in range(40):
        clock.now += 1
        found = rates.per_second(5000, 20)
    assert found == (0, 0)


def test_updates_that_are_due() -> None:
    def due(inserted: int, held: int, updates: int, forgiven: float = 0.0) -> int:
        return limiter.updates_due(DqnCounters(inserted=inserted, forgiven=forgiven), held, updates)

    limiter = RateLimiter(learner_settings(batch_size=64, samples_per_insert=0.5, learning_starts=1000), 4000)
    assert [due(inserted, inserted, 0) for inserted in (0, 999, 1000, 1280)] == [0, 0, 7, 10]
    assert due(1280, 1280, 4) == 6 and due(1280, 1280, 11) == 0 and due(1280, 1280, 4, forgiven=2.5) == 3
    assert due(9000, 999, 0) == 0 and due(9000, 1000, 64) == 6, "with a buffer that was empty again"
    limiter = RateLimiter(learner_settings(batch_size=64, samples_per_insert=0.5, learning_starts=10**6), 500)
    assert due(640, 500, 0) == 5, "its buffer never holds learning_starts"


def test_weights_may_be_older_where_more_is_in_flight() -> None:
    """A request here pays for 20 updates: with 1,000 in flight, results are 20,000 updates old."""
    limiter = RateLimiter(learner_settings(batch_size=1024, samples_per_insert=0.5), 10**6)
    counters = DqnCounters(inserted=10 * 40_960, rollouts=10)
    assert limiter.mean_credit(counters) == 20
    assert limiter.max_weights_age(10_000, 4, counters) == 10_000
    assert limiter.max_weights_age(10_000, 1000, counters) == 80_000
    assert limiter.max_weights_age(10_000, 1000, DqnCounters()) == 10_000


AT, RATES = Status(12_345, "episodes", 493_800, 678), (98_765.4, 43.2)
DUELS = {"random": Duel(np.array([0.75, 1.0]), np.ones(2), np.zeros(2))}
WON = "games won against: random 87.5%"


def test_curves_from_the_lowest_to_the_highest_value() -> None:
    assert [curve(values) for values in ([0.5], [0.2, 0.9, 0.55], [0.5, 0.5])] == ["▁", "▁█▅", "▁▁"]
    many = curve([float(value) for value in range(1000)])
    assert len(many) == 24 and many[0] == "▁" and many[-1] == "█" and list(many) == sorted(many)


def test_plain_lines_elsewhere(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(progress, "PLAIN_SECONDS", 0.0)
    with Display("a/b") as display:
        display.show(AT, 0.25, RATES, 90.0)
        display.show(Status(3, "iterations", 4_000), 0.5, (12.0, 0.0), None)
        display.evaluated(DUELS)
    assert capsys.readouterr().err.splitlines() == [
        "a/b  25%  12,345 episodes  493,800 env steps  678 updates  98,765 env steps/s  43 updates/s  1:30 left",
        "a/b  50%  3 iterations  4,000 env steps  12 env steps/s",
        f"evaluation, {WON}",
    ]


def test_the_first_look_is_a_line_that_stays(capsys: pytest.CaptureFixture[str]) -> None:
    with Display("a/b") as display:
        display.first_look("after 1 minute", {**DUELS, "greedy": DUELS["random"]})
        display.first_look("after 1 minute", {})
    assert capsys.readouterr().err.splitlines() == ["after 1 minute: 87.5% against random, 87.5% against greedy"]
