"""First evaluation of a run, after a minute of training."""

from pathlib import Path

import pytest

from busso.train import evaluations
from busso.train.evaluations import FirstEvaluation, first_look_at
from busso.train.settings.dqn import EvaluationSettings
from tests.train.defaults import evaluation_settings
from tests.train.test_loop import run

EVERY_1000 = evaluation_settings(every_episodes=1000)
FOLLOWS_THE_CLOCK = ("evaluation.min_seconds=1e6", "evaluation.every_episodes=32")


def test_the_first_evaluation_after_a_minute_is_the_first_look() -> None:
    look = FirstEvaluation(EVERY_1000)
    assert not look.due(59.9, 5000) and not look.takes(49.9)
    assert look.due(60.0, 5000) and look.takes(63.0)
    assert not look.due(64.0, 5000) and not look.takes(64.0)


def test_one_that_is_due_a_little_earlier_is_it() -> None:
    look = FirstEvaluation(EVERY_1000)
    assert look.takes(51.0) and not look.due(60.0, 5000)


@pytest.mark.parametrize(
    ("evaluation", "episodes", "before", "made", "said"),
    [
        (EVERY_1000, 100, 0.0, True, True),
        (EVERY_1000, 99, 0.0, False, True),  # at this pace, no evaluation is due within ten more minutes
        (evaluation_settings(every_episodes=1000, min_seconds=0.0), 5000, 0.0, False, True),
        (evaluation_settings(every_episodes=1000, opponents=[]), 5000, 0.0, False, True),
        (EVERY_1000, 5000, 59.0, True, True),  # resumed
        (EVERY_1000, 5000, 60.0, False, False),  # resumed after the first evaluation
    ],
)
def test_when_an_evaluation_is_made_for_it(
    evaluation: EvaluationSettings, episodes: int, before: float, made: bool, said: bool
) -> None:
    look = FirstEvaluation(evaluation, before)
    assert (look.due(61.0, episodes), look.takes(61.0)) == (made, said)


def test_minutes_in_words() -> None:
    assert [first_look_at(seconds) for seconds in (61.0, 89.0, 91.0)] == ["after 1 minute"] * 2 + ["after 2 minutes"]


@pytest.mark.parametrize(("seconds", "lines"), [(0.01, 1), (1e6, 0)])
def test_a_run_says_it_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    seconds: float,
    lines: int,
) -> None:
    monkeypatch.setattr(evaluations, "FIRST_LOOK_SECONDS", seconds)
    run(tmp_path, *FOLLOWS_THE_CLOCK)
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("after 1 minute: ")]
    assert len(said) == lines and all(line.endswith("% against random") for line in said)
