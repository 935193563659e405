"""Epsilon, the learning rate and the seats, by hand."""

import numpy as np
import pytest

from cards.splitmix import stream
from train.dqn.exploration import epsilon, linear
from train.dqn.seating import player_names, seating
from train.settings.learning import PhaseSettings


@pytest.mark.parametrize(("spent", "expected"), [(0, 1.0), (0.05, 0.7625), (0.1, 0.525), (0.2, 0.05), (1.0, 0.05)])
def test_epsilon_falls_linearly(spent: float, expected: float) -> None:
    assert epsilon(spent, 1.0, 0.05, 0.2) == pytest.approx(expected)


def test_epsilon_without_decay_is_at_its_end() -> None:
    assert epsilon(0, 1.0, 0.1, 0) == pytest.approx(0.1)


def test_linear_is_clamped() -> None:
    assert [linear(2, 1, share) for share in (-1, 0, 0.25, 1, 2)] == [2, 2, 1.75, 1, 1]


PHASES = [
    PhaseSettings(1000, {"study_heuristic": 0.7, "random": 0.3}),
    PhaseSettings(3000, {"study_heuristic": 1.0}),
    PhaseSettings(None, {"network": 1.0}),
]


def test_seats_follow_the_phases() -> None:
    names = player_names(PHASES)
    assert names == ["network", "study_heuristic", "random"]
    seats = seating(PHASES, names, 0, stream(1, "episodes", 0, 4000), 4)
    first, second, third = seats[:1000], seats[1000:3000], seats[3000:]
    assert (first == 1).mean() == pytest.approx(0.7, abs=0.03)
    assert (first == 2).mean() == pytest.approx(0.3, abs=0.03)
    assert (second == 1).all() and (third == 0).all()


def test_seats_of_an_episode_do_not_depend_on_the_batch() -> None:
    names = player_names(PHASES)
    whole = seating(PHASES, names, 0, stream(1, "episodes", 0, 4000), 4)
    for first, count in ((0, 10), (990, 20), (2999, 2), (3500, 500)):
        part = seating(PHASES, names, first, stream(1, "episodes", first, count), 4)
        assert np.array_equal(part, whole[first : first + count])


def test_seats_of_one_episode_are_drawn_apart() -> None:
    half = [PhaseSettings(None, {"network": 0.5, "random": 0.5})]
    seats = seating(half, ["network", "random"], 0, stream(1, "episodes", 0, 4000), 4)
    assert len(np.unique(seats, axis=0)) == 16
