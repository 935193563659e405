"""Best response to a player of Kuhn poker, whose value is worked out by hand."""

from pathlib import Path

import pytest

from busso.train.__main__ import main
from busso.train.run.results import read_results
from tests.tiny_game import TYPED

SHORT = ("rollout=local", "minutes=null", "episodes=20000", "learner.samples_per_insert=16", "evaluation.deals=64")

# `honest` bets and calls with the king only. As first seat, a best response bets the jack (queen folds, king calls:
# -1/2), passes the queen (0) and wins 1 with the king: 1/6. As second, it bets whenever honest passes, which then
# folds: 0 with jack and queen, 1 with the king: 1/3. On average 1/4 a game, so 1/2 more than honest.
OF_HONEST = 0.5


@pytest.mark.timeout(240)
def test_it_wins_what_can_be_won(tmp_path: Path) -> None:
    given = ["experiment=best_response", "opponents.only=honest", *SHORT, f"runs={tmp_path}", "name=b"]
    assert main([TYPED, *given]) == 0
    results = read_results(tmp_path / "kuhn_poker" / "b") or {}
    mean, half_width = results["honest"]["chips"]
    assert results.keys() == {"honest"} and results["honest"]["deals"] == 4096
    assert mean + 2 * half_width > 0.9 * OF_HONEST and mean - 2 * half_width < OF_HONEST
