"""Choice of the best network of a run: by games won or by result, over all opponents or one."""

from pathlib import Path

import numpy as np
import pytest

from busso.cards.matches.duplicate import Duel
from busso.command.settings.checks import SettingsError
from busso.train.dqn.evaluations import BestNetwork
from busso.train.run.checkpoint import checkpoint
from busso.train.run.checkpoint.background_writer import BackgroundWriter
from busso.train.settings.dqn import EvaluationSettings, TrainSettings
from busso.train.settings.resolve import settings_of
from tests.errors import error_about

OPPONENTS = "evaluation.opponents=[initial,cautious]"


def duels(initial: tuple[float, float], cautious: tuple[float, float]) -> dict[str, Duel]:
    """Return two deals against each opponent, with this share of games won and this margin."""
    both = {"initial": initial, "cautious": cautious}
    return {
        name: Duel(np.full(2, won), np.full(2, more / 2), np.full(2, -more / 2)) for name, (won, more) in both.items()
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
    best = offered(tmp_path, best_metric, (OFTEN, MUCH, OF_CAUTIOUS))
    state = checkpoint.load(tmp_path / checkpoint.BEST)
    assert (state["env_steps"], state["score"]) == (kept, pytest.approx(score)) and best.score == state["score"]


def offered(folder: Path, best_metric: str, evaluations: tuple[dict[str, Duel], ...], run: str = "one") -> BestNetwork:
    """Offer the evaluations, after 1, 2, ... decisions, to a run that continues in the folder."""
    settings = settings_of(["game=spike", OPPONENTS, f"evaluation.best_metric={best_metric}"])
    assert isinstance(settings, TrainSettings)
    writer = BackgroundWriter()
    best = BestNetwork(settings, folder, writer, run)
    for number, each in enumerate(evaluations, start=1):
        best.offer({}, number, each)
        writer.wait()
    return best


def test_a_score_is_compared_with_scores_of_its_kind_alone(tmp_path: Path) -> None:
    """A best result of 15.5 credits must not block every later best by games won, nor that of another run."""
    assert offered(tmp_path, "result", (MUCH,)).score == 15.5
    assert offered(tmp_path, "result", (OF_CAUTIOUS,)).score == 15.5
    assert offered(tmp_path, "result:cautious", (OFTEN,)).score == -2
    assert offered(tmp_path, "win_rate", (OF_CAUTIOUS,)).score == 0.5
    assert offered(tmp_path, "win_rate:initial", (MUCH,)).score == 0.7
    assert offered(tmp_path, "win_rate:initial", (OF_CAUTIOUS,), "another run").score == 0.6


@pytest.mark.parametrize(
    ("best_metric", "hint"), [("points", ""), ("result:greedy", "add it there"), ("result:", "add it there")]
)
def test_what_is_refused(best_metric: str, hint: str) -> None:
    with error_about(SettingsError, "evaluation.best_metric", hint=hint):
        EvaluationSettings(best_metric=best_metric)


def test_spike_is_judged_by_credits() -> None:
    settings = settings_of(["game=spike"])
    assert isinstance(settings, TrainSettings) and settings.evaluation.best_measure == "result"
    assert settings.evaluation.best_against == settings.evaluation.opponents
