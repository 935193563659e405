"""Epsilon, learning rate and seats, by hand."""

import numpy as np
import pytest

from busso.cards.compiled.splitmix import stream
from busso.cards.game import load_game
from busso.train.learner.learner import epsilon, linear
from busso.train.rollout.worker import one_side, player_names, seating
from busso.train.settings.dqn import SIDE, PhaseSettings


def test_epsilon_falls_linearly() -> None:
    """Without decay it is at its end."""
    found = [*(epsilon(spent, 1.0, 0.05, 0.2) for spent in (0, 0.05, 0.1, 0.2, 1.0)), epsilon(0, 1.0, 0.1, 0)]
    assert found == pytest.approx([1.0, 0.7625, 0.525, 0.05, 0.05, 0.1])


def test_linear_is_clamped() -> None:
    assert [linear(2, 1, share) for share in (-1, 0, 0.25, 1, 2)] == [2, 2, 1.75, 1, 1]


TRESSETTE = load_game("tressette")

PHASES = [
    PhaseSettings(1000, {"study_heuristic": 0.7, "random": 0.3}),
    PhaseSettings(3000, {"study_heuristic": 1.0}),
    PhaseSettings(None, {"network": 1.0}),
]


def test_seats_follow_the_phases() -> None:
    names = player_names(PHASES)
    assert names == ["network", "study_heuristic", "random"]
    seats = seating(PHASES, names, 0, stream(1, "episodes", 0, 4000), TRESSETTE)
    first, second, third = seats[:1000], seats[1000:3000], seats[3000:]
    assert (first == 1).mean() == pytest.approx(0.7, abs=0.03)
    assert (first == 2).mean() == pytest.approx(0.3, abs=0.03)
    assert (second == 1).all() and (third == 0).all()


def test_seats_of_an_episode_do_not_depend_on_the_batch() -> None:
    names = player_names(PHASES)
    whole = seating(PHASES, names, 0, stream(1, "episodes", 0, 4000), TRESSETTE)
    for first, count in ((0, 10), (990, 20), (2999, 2), (3500, 500)):
        part = seating(PHASES, names, first, stream(1, "episodes", first, count), TRESSETTE)
        assert np.array_equal(part, whole[first : first + count])


def test_seats_of_one_episode_are_drawn_apart() -> None:
    half = [PhaseSettings(None, {"network": 0.5, "random": 0.5})]
    seats = seating(half, ["network", "random"], 0, stream(1, "episodes", 0, 4000), TRESSETTE)
    assert len(np.unique(seats, axis=0)) == 16


def test_a_side_is_drawn_for_the_whole_game() -> None:
    """The network keeps one side, the other seats have one player; before and after that, every seat is drawn."""
    mix = {"network": 0.5, "random": 0.3, "greedy": 0.2}
    phases = [PhaseSettings(1000, {"greedy": 1.0}), PhaseSettings(None, mix, SIDE)]
    names, seeds = player_names(phases), stream(1, "episodes", 0, 5000)
    seats = seating(phases, names, 0, seeds, TRESSETTE)
    assert (seats[:1000] == names.index("greedy")).all()
    games, others = seats[1000:], one_side(TRESSETTE, seeds[1000:]) == 1
    assert (games[~others] == 0).all()
    guests = games[others].reshape(-1, 2)
    assert (guests[:, 0] == guests[:, 1]).all()
    found = [np.mean(guests[:, 0] == names.index(name)) for name in mix]
    assert found == pytest.approx(list(mix.values()), abs=0.03)
    assert np.array_equal(seats[990:1010], seating(phases, names, 990, seeds[990:1010], TRESSETTE))
