"""Evaluations of a run: the first look, and the best network, by games won or by result."""

from math import hypot, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from busso.cards.duplicate import Duel
from busso.command.settings.checks import SettingsError
from busso.train import evaluations
from busso.train.__main__ import main
from busso.train.evaluations import BestNetwork, FirstEvaluation, first_look_at
from busso.train.rollout.request import Weights
from busso.train.rollout.worker import Evaluator
from busso.train.run import checkpoint
from busso.train.run.background_writer import BackgroundWriter
from busso.train.settings.dqn import EvaluationSettings, TrainSettings
from busso.train.settings.resolve import settings_of
from tests.errors import error_about
from tests.train.defaults import evaluation_settings
from tests.train.runs import TrainedRuns, small
from tests.train.test_loop import run

OPPONENTS = "evaluation.opponents=[initial,cautious]"
DEALS = 2000


def duels(initial: tuple[float, float], cautious: tuple[float, float]) -> dict[str, Duel]:
    """Return many equal deals against each opponent, with this share of games won and this margin."""
    both = {"initial": initial, "cautious": cautious}
    return {
        name: Duel(np.full(DEALS, won), np.full(DEALS, more / 2), np.full(DEALS, -more / 2))
        for name, (won, more) in both.items()
    }


# Most wins over both; most credits over both; most credits from cautious.
OFTEN, MUCH, OF_CAUTIOUS = duels((0.9, 4), (0.6, -2)), duels((0.7, 30), (0.5, 1)), duels((0.6, 5), (0.4, 3))


@pytest.mark.parametrize(
    ("best_metric", "kept", "score"),
    [
        ("win_rate", 1, 0.75),
        ("result", 2, 15.5),
        ("result:cautious", 3, 3.0),
        ("win_rate:cautious", 1, 0.6),
        ("result:initial", 2, 30.0),
    ],
)
def test_what_is_kept(tmp_path: Path, best_metric: str, kept: int, score: float) -> None:
    assert offered(tmp_path, best_metric, (OFTEN, MUCH, OF_CAUTIOUS)) == (kept, pytest.approx(score))


def offered(
    folder: Path, best_metric: str, evaluations: tuple[dict[str, Duel], ...], run: str = "one"
) -> tuple[int, float]:
    """Offer the evaluations, after 1, 2, ... decisions, to a run that continues in the folder.

    Returns the decisions and the score of the network that is kept.
    """
    settings = settings_of(["game=spike", OPPONENTS, f"evaluation.best_metric={best_metric}"])
    assert isinstance(settings, TrainSettings)
    folder.mkdir(exist_ok=True)
    writer = BackgroundWriter()
    best = BestNetwork(settings, folder, writer, run)
    for number, each in enumerate(evaluations, start=1):
        best.offer({}, number, each)
        writer.wait()
    state = checkpoint.load(folder / checkpoint.BEST)
    assert best.least == state["least"] <= state["score"]
    return state["env_steps"], state["score"]


def spread(result: float) -> dict[str, Duel]:
    """Return deals against each opponent whose results have this mean, and a 95% half-width of 0.2 each."""
    either = np.tile([-1.0, 1.0], DEALS // 2) * 0.2 / 1.96 * sqrt(DEALS)
    return {name: Duel(np.full(DEALS, 0.5), result + either, np.zeros(DEALS)) for name in ("initial", "cautious")}


def test_a_newer_network_is_kept_unless_it_is_significantly_worse(tmp_path: Path) -> None:
    """Two scores, each the mean over two opponents, differ by up to 0.2 in 95 of 100 cases by chance."""
    assert hypot(0.2, 0.2) / 2 * sqrt(2) == pytest.approx(0.2)
    assert offered(tmp_path / "within", "result", (spread(1.0), spread(0.82))) == (2, pytest.approx(0.82))
    assert offered(tmp_path / "below", "result", (spread(1.0), spread(0.78))) == (1, pytest.approx(1.0))
    slide = tuple(spread(each) for each in (1.0, 0.9, 0.85, 0.75, 0.7))
    assert offered(tmp_path / "slide", "result", slide) == (3, pytest.approx(0.85))
    assert offered(tmp_path / "slide", "result", (spread(0.78), spread(0.7)))[1] == pytest.approx(0.85)
    assert offered(tmp_path / "slide", "result", (spread(0.81),))[1] == pytest.approx(0.81)


def test_a_score_is_compared_with_scores_of_its_kind_alone(tmp_path: Path) -> None:
    """A best result of 15.5 credits must not block every later best by games won, nor that of another run."""
    assert offered(tmp_path, "result", (MUCH,))[1] == 15.5
    assert offered(tmp_path, "result", (OF_CAUTIOUS,))[1] == 15.5
    assert offered(tmp_path, "result:cautious", (OFTEN,))[1] == -2
    assert offered(tmp_path, "win_rate", (OF_CAUTIOUS,))[1] == pytest.approx(0.5)
    assert offered(tmp_path, "win_rate:initial", (MUCH,))[1] == pytest.approx(0.7)
    assert offered(tmp_path, "win_rate:initial", (OF_CAUTIOUS,), "another run")[1] == pytest.approx(0.6)


@pytest.mark.parametrize(
    ("best_metric", "hint"), [("points", ""), ("result:greedy", "add it there"), ("result:", "add it there")]
)
def test_what_is_refused(best_metric: str, hint: str) -> None:
    with error_about(SettingsError, "evaluation.best_metric", hint=hint):
        evaluation_settings(best_metric=best_metric)


def test_spike_is_judged_by_credits() -> None:
    settings = settings_of(["game=spike"])
    assert isinstance(settings, TrainSettings) and settings.evaluation.best_measure == "result"
    assert settings.evaluation.best_against == settings.evaluation.opponents


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


@pytest.mark.parametrize("change", [None, "deals", "opponents", "damage", "another run"])
def test_results_that_a_run_has_are_not_played_again(
    tmp_path: Path, trained_run: TrainedRuns, monkeypatch: pytest.MonkeyPatch, change: str | None
) -> None:
    trained_run(runs=tmp_path)
    path, more = tmp_path / "tressette" / "small" / "results.json", list[str]()
    played, play = list[int](), Evaluator.duels

    def counted(self: Evaluator, weights: Weights, stream: str, deals: int, *more: Any) -> dict[str, Duel]:
        played.append(deals)
        return play(self, weights, stream, deals, *more)

    monkeypatch.setattr(Evaluator, "duels", counted)
    if change == "damage":
        path.write_text("{")
    elif change == "another run":
        path.write_text(path.read_text().replace('"id": "', '"id": "f'))
    elif change is not None:
        more = ["evaluation.final_deals=12"] if change == "deals" else ["evaluation.opponents=[random,greedy]"]
    before = path.read_bytes()
    assert main(small(tmp_path, *more)) == 0
    assert played == ([] if change is None else [12 if change == "deals" else 8])
    assert (path.read_bytes() == before) == (change is None)


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
