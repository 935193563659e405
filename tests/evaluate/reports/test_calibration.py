"""Calibration of made-up decisions whose calibration is known."""

import numpy as np
import pytest

from busso.evaluate.report.calibration import explained, reliability


def test_true_values_lie_on_the_diagonal_within_their_intervals() -> None:
    random = np.random.default_rng(3)
    value = random.uniform(-1, 1, 20_000)
    outcome = np.where(random.uniform(-1, 1, value.size) < value, 1.0, -1.0)  # with mean `value`
    found = reliability(value, outcome, np.arange(value.size))
    assert found.count.sum() == value.size and found.count.size == 12
    assert (np.abs(found.value - found.outcome) < 2 * found.half_width).all()
    assert found.error < 0.03 and explained(value, outcome) == pytest.approx(1 / 3, abs=0.03)


def test_values_that_are_too_high_are_seen() -> None:
    outcome = np.linspace(-1, 1, 1200)
    found = reliability(outcome + 0.25, outcome, np.arange(1200))
    assert found.error == pytest.approx(0.25) and (found.value > found.outcome).all()


def test_intervals_are_over_games() -> None:
    """Counting each game ten times does not narrow the interval."""
    random = np.random.default_rng(4)
    value, outcome = random.normal(size=500), random.normal(size=500)
    once = reliability(value, outcome, np.arange(500))
    often = reliability(np.repeat(value, 10), np.repeat(outcome, 10), np.repeat(np.arange(500), 10))
    assert often.half_width == pytest.approx(once.half_width, rel=0.05)


def test_equal_values_are_one_bin() -> None:
    found = reliability(np.zeros(50), np.ones(50), np.arange(50))
    assert found.count.tolist() == [50] and found.error == 1


def test_one_game_tells_nothing_of_its_spread() -> None:
    found = reliability(np.repeat([0.0, 1.0], 20), np.repeat([0.5, 2.0], 20), np.repeat([7, 8], 20), bins=2)
    assert found.outcome.tolist() == [0.5, 2.0] and np.isnan(found.half_width).all()
