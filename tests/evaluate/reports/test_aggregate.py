"""Runs of several seeds as one number, by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evaluate.report.aggregate import interquartile_mean, probability_of_improvement, with_interval


def test_the_interquartile_mean_leaves_out_the_outer_quarters() -> None:
    assert interquartile_mean(np.array([100.0, 1, 2, 3, 4, 5, 6, -50])) == pytest.approx((2 + 3 + 4 + 5) / 4)
    assert interquartile_mean(np.array([1.0, 2, 9])) == pytest.approx(4)  # a quarter of three is none


@given(arrays(np.float64, (4, 3), elements=st.floats(0, 1)))
def test_the_interval_is_around_the_mean_and_within_the_scores(scores: np.ndarray) -> None:
    found = with_interval(scores, seed=1, samples=200)
    assert scores.min() - 1e-12 <= found.low <= found.high <= scores.max() + 1e-12
    assert with_interval(scores, seed=1, samples=200) == found


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """Of ten seeds that are normal around 0.6; the percentile bootstrap of few seeds is known to be too narrow."""
    random = np.random.default_rng(5)
    held = 0
    for number in range(200):
        found = with_interval(random.normal(0.6, 0.05, (10, 4)), seed=number, samples=300)
        held += found.low <= 0.6 <= found.high
    assert 170 <= held <= 200


def test_one_seed_has_no_interval() -> None:
    found = with_interval(np.array([[0.5, 0.7]]), seed=1)
    assert found.mean == pytest.approx(0.6) and np.isinf(found.low) and np.isinf(found.high)


def test_the_probability_of_improvement_by_hand() -> None:
    first, second = np.array([[0.5, 0.9], [0.7, 0.9]]), np.array([[0.6, 0.9], [0.4, 0.9]])
    # Against the first opponent 0.5 beats one of two and 0.7 both; against the second all is equal.
    assert probability_of_improvement(first, second, seed=1).mean == pytest.approx((3 / 4 + 1 / 2) / 2)
    assert probability_of_improvement(second, first, seed=1).mean == pytest.approx((1 / 4 + 1 / 2) / 2)
